"""`prune:` of a sweep file, as frozen data: a method's name, or a map with its settings.

Standard library only: workers read it. What is not set is the method's own default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean

# method → its settings besides `method`
SETTINGS: dict[str, tuple[str, ...]] = {
    "asha": ("min", "factor", "max", "pause"),
    "hyperband": ("min", "factor", "max", "pause"),
    "median": ("min", "every", "others"),
    "patience": ("patience", "delta", "min"),
}
_WHOLE = ("min", "max", "every", "others", "patience")


@dataclass(frozen=True)
class Prune:
    """`min`, `max` and `every` are steps as the script logs them."""

    method: str
    min: int | None = None
    max: int | None = None
    factor: float = 3.0
    pause: bool = True  # whoever falls behind keeps its checkpoint and may go on; false: it ends
    every: int | None = None
    others: int = 5
    patience: int = 10
    delta: float = 0.0


def parse(given: Any) -> Prune | None:
    """The settings of `prune:`; None for nothing, `none` and false."""
    if given is None or given is False or given == "none":
        return None
    settings = dict(given) if isinstance(given, Mapping) else {"method": given}
    method = settings.pop("method", None)
    if not isinstance(method, str) or method not in SETTINGS:
        raise SpecError(f"prune: no method named {method!r}", hint=_hint(str(method), SETTINGS))
    for name, value in settings.items():
        _check(method, name, value)
    prune = Prune(method, **settings)
    if method == "hyperband" and prune.max is None:
        raise SpecError(
            "prune: hyperband needs max", hint="the step at which a run is complete, like max: 81"
        )
    if prune.max is not None and prune.max <= (prune.min or 1):
        raise SpecError(f"prune: max {prune.max} is not above min {prune.min or 1}")
    return prune


def _check(method: str, name: str, value: Any) -> None:
    if name not in SETTINGS[method]:
        raise SpecError(f"prune: {method} has no setting {name!r}", hint=_hint(name, SETTINGS[method]))
    if name == "pause":
        if not isinstance(value, bool):
            raise SpecError(f"prune: pause is true or false, not {value!r}")
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(f"prune: {name} is a number, not {value!r}")
    if name in _WHOLE and (not isinstance(value, int) or value < 1):
        raise SpecError(f"prune: {name} is a whole number of at least 1, not {value!r}")
    if name == "factor" and value < 2:
        raise SpecError(f"prune: factor is at least 2, not {value!r}")
    if name == "delta" and value < 0:
        raise SpecError(f"prune: delta is 0 or more, not {value!r}")


def _hint(word: str, known: Iterable[str]) -> str:
    return did_you_mean(word, known, f"known: {', '.join(known)}")
