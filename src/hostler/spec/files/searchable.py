"""Checks that a sweep file's method, metric, budget and pruning fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hostler.errors import SpecError
from hostler.spec import pruning
from hostler.spec.job import Budget, Objective
from hostler.spec.methods import LEARNING

Where = Callable[[tuple[str | int, ...]], str]


def check(
    method: str,
    objectives: Sequence[Objective],
    prune: Mapping[str, Any],
    budget: Budget,
    where: Where = lambda path: "",
) -> None:
    """SpecError, with the file's line, where the parts don't go together."""
    if method in LEARNING:
        _check_learning(method, objectives, budget, where)
    if not prune:
        return
    try:
        pruning.parse(prune)
    except SpecError as error:
        raise SpecError(error.message, error.hint, where=where(("prune",))) from None
    if len(objectives) != 1:
        raise SpecError(
            f"prune: {prune['method']} needs one metric, and the file has {len(objectives) or 'none'}",
            hint="metric: {name: val/accuracy, goal: max}",
            where=where(("prune",)),
        )


def _check_learning(method: str, objectives: Sequence[Objective], budget: Budget, where: Where) -> None:
    if not objectives and method != "qmc":
        raise SpecError(
            f"method {method} needs a metric, and the file has none",
            hint="metric: {name: val/accuracy, goal: max}",
            where=where(("method",)),
        )
    if method == "cmaes" and len(objectives) > 1:
        raise SpecError(
            f"method cmaes needs one metric, and the file has {len(objectives)}",
            hint="method: nsga2 or tpe takes several",
            where=where(("method",)),
        )
    if budget.runs is None and budget.hours is None:
        raise SpecError(
            f"method {method} needs a budget: it always finds more to try",
            hint="budget: {runs: 100}",
            where=where(("method",)),
        )
