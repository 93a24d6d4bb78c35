"""The value and the step that a run is ranked by. Pure.

A run is ranked by the value of the weights that one would get. By the rule `kept` that is the best value
where the state of it was kept (`keep_best`, a Manager, the trainer), else the last; `best`, `last` and
`mean:N` are rules that a person may choose. Where an end does not hold what a rule needs, as one of an older
hostler, the last value counts, and says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite, nan
from typing import Any, NamedTuple, Protocol

KEPT, BEST, LAST, MEAN = "kept", "best", "last", "mean"
RULES = f"{KEPT}, {BEST}, {LAST} or {{{MEAN}: 5}}"
GOALS = {"max": "max", "min": "min", "maximize": "max", "minimize": "min"}


class HasGoal(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def goal(self) -> str: ...

    @property
    def of(self) -> str: ...


class Judged(NamedTuple):
    """The value that a run is ranked by."""

    value: float
    step: int | None = None  # at which it was logged; None where an older hostler has not noted it
    of: str = LAST  # the value it is: best, last or mean of 5

    @property
    def counts(self) -> bool:
        """Whether a run may be ranked by it: NaN and infinities never win."""
        return isfinite(self.value)

    @property
    def shown(self) -> str:
        """The value's kind and step, as in `best, step 40`."""
        return self.of if self.step is None else f"{self.of}, step {self.step}"


def rule(given: Any) -> str:
    """The rule of `of:` as a text: kept, best, last or mean:5; ValueError for anything else."""
    if given in (KEPT, BEST, LAST):
        return str(given)
    count: Any = None
    if isinstance(given, Mapping) and list(given) == [MEAN]:
        count = given[MEAN]
    elif isinstance(given, str) and given.startswith(f"{MEAN}:"):
        count = averaged(given)
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return f"{MEAN}:{count}"
    raise ValueError(f"{given!r} is not a value to rank by: use {RULES}")


def averaged(of: str) -> int:
    """How many of the last values the rule takes the mean of; 0 where it takes none."""
    digits = of.partition(":")[2]
    return int(digits) if digits.isdecimal() else 0


def judge(facts: Mapping[str, Any], by: HasGoal) -> Judged | None:
    """The value that a run with this end (or release) is ranked by; None if it has not logged the metric."""
    total = (facts.get("metrics") or {}).get(by.name)
    if total is None:
        return None
    if by.of == KEPT:
        state = (facts.get("kept") or {}).get(by.name)
        if state and state["goal"] == by.goal:
            return Judged(state["value"], state["step"], BEST)
    elif by.of == BEST:
        if (best := total.get(by.goal)) is not None:
            return Judged(best, _whole(total.get(f"{by.goal}_step")), BEST)
    elif by.of != LAST:
        mean = (facts.get("means") or {}).get(by.name)
        if mean and mean["of"] == averaged(by.of):
            return Judged(mean["value"], _whole(total.get("step")), f"{MEAN} of {mean['of']}")
    return Judged(total.get("last", nan), _whole(total.get("step")))


def part_of(by: HasGoal, kept: Collection[str]) -> str:
    """The part of a metric's totals that `judge` takes, where ends hold these tables; '' where that is each
    end's own matter."""
    if by.of == BEST:
        return by.goal
    own = {KEPT: "kept", LAST: ""}.get(by.of, "means")
    return "" if own in kept else LAST


def value_of(facts: Mapping[str, Any], by: HasGoal) -> float:
    """The same without its step; NaN if there is none."""
    judged = judge(facts, by)
    return judged.value if judged else nan


def _whole(step: float | None) -> int | None:
    return None if step is None or not isfinite(step) else int(step)
