"""The weight of the newest model in an average of the weights: `ema_<g>` or `poly_<eta>`. Pure.

`ema`: g is the weight of the old average. `poly`: the new model weighs (eta+1)/(eta+t) at step t; poly_0 is
the plain mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hostler.errors import SpecError

EMA = 0.99
_HINT = "ema_0.99, or poly_8"


def share(name: str) -> Callable[[int], float]:
    """Weight of the newest model as a function of t = 1, 2, …; the first is all there is."""
    kind, _, rest = name.partition("_")
    try:
        given = float(rest) if rest else None
    except ValueError:
        raise SpecError(f"averaging {name!r}: {rest!r} is not a number", hint=_HINT) from None
    if kind == "ema":
        old = EMA if given is None else given
        if not 0 <= old < 1:
            raise SpecError(f"averaging {name!r}: the weight of the old average is in [0, 1)", hint=_HINT)
        return lambda t: 1.0 if t == 1 else 1 - old
    if kind == "poly" and given is not None and 0 <= given < math.inf:
        eta = given
        return lambda t: (eta + 1) / (eta + t)
    raise SpecError(f"no averaging named {name!r}", hint=_HINT)
