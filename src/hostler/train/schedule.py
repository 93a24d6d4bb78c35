"""The learning rate as a pure function of the step: `factor(step) · base_lr`.

`constant`, `cosine`, `poly[_p]` ((1 + t)^-p), `step_<times>_<factor>`; a linear warm-up before any of them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean

Factor = Callable[[int], float]
POWER = 0.5  # of poly, if none is named
NAMES = ("constant", "cosine", "poly", "step")
_STEP = "step_3_0.1 drops three times by 0.1; step_2,1,1_0.1 drops after phases of these relative lengths"


def factor(name: str, total: int, warmup: int = 0) -> Factor:
    """The factor at step 0, 1, … total-1. After a warm-up the schedule spans what is left."""
    rest = max(total - warmup, 1)
    shape = _shape(name)

    def at(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return shape(step - warmup, rest)

    return at


def _shape(name: str) -> Callable[[int, int], float]:
    """The factor as a function of the steps done and of all steps."""
    kind, _, rest = name.partition("_")
    if name == "constant":
        return lambda done, total: 1.0
    if name == "cosine":
        return lambda done, total: (1 + math.cos(math.pi * min(done / total, 1.0))) / 2
    if kind == "poly":
        power = _number(rest, name, "poly_0.5, for example") if rest else POWER
        return lambda done, total: (1 + done) ** -power
    if kind == "step":
        drops = _drops(rest, name)
        return lambda done, total: drops(min(done / total, 1.0))
    raise SpecError(f"no lr_schedule named {name!r}", did_you_mean(kind, NAMES, ", ".join(NAMES)))


def _drops(rest: str, name: str) -> Callable[[float], float]:
    times, _, by = rest.partition("_")
    if not times or not by:
        raise SpecError(f"lr_schedule {name!r} does not say when and by how much to drop", _STEP)
    lengths = [_number(part, name) for part in times.split(",")]
    if len(lengths) == 1:
        lengths = [1.0] * (_whole(times, name) + 1)
    if min(lengths) <= 0:
        raise SpecError(f"lr_schedule {name!r}: a phase has a length above 0", _STEP)
    ends = [end / sum(lengths) for end in accumulate(lengths)][:-1]
    gamma = _number(by, name)
    if gamma > 1 and len(ends) * math.log10(gamma) > 300:
        raise SpecError(f"lr_schedule {name!r}: a rate cannot drop so often by the factor {by}", _STEP)
    return lambda done: gamma ** bisect_right(ends, done + 1e-12)


def _number(text: str, name: str, hint: str = _STEP) -> float:
    try:
        found = float(text)
    except ValueError:
        raise SpecError(f"lr_schedule {name!r}: {text!r} is not a number", hint) from None
    if not 0 <= found < math.inf:
        raise SpecError(f"lr_schedule {name!r}: {text} is not at least 0 and finite", hint)
    return found


def _whole(text: str, name: str) -> int:
    if not text.isdecimal():
        raise SpecError(f"lr_schedule {name!r}: {text!r} is not a number of drops", _STEP)
    if len(text) > 4:
        raise SpecError(f"lr_schedule {name!r}: {text} drops are too many", _STEP)
    return int(text)
