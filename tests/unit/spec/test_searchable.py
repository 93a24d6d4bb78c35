from __future__ import annotations

from typing import Any

import pytest

from hostler.errors import SpecError
from hostler.spec.files.searchable import check
from hostler.spec.job import Budget, Objective

ONE, TWO = [Objective("acc")], [Objective("acc"), Objective("loss", "min")]


@pytest.mark.parametrize(
    ("method", "objectives", "prune", "budget"),
    [
        ("grid", [], {}, Budget()),
        ("random", [], {}, Budget(runs=3)),
        ("tpe", ONE, {"method": "asha"}, Budget(runs=3)),
        ("tpe", TWO, {}, Budget(hours=1)),
        ("nsga2", TWO, {}, Budget(runs=3)),
        ("qmc", [], {}, Budget(runs=3)),
        ("grid", ONE, {"method": "patience"}, Budget()),
    ],
)
def test_these_can_be(method: str, objectives: Any, prune: Any, budget: Budget) -> None:
    check(method, objectives, prune, budget)


@pytest.mark.parametrize(
    ("method", "objectives", "prune", "budget", "said"),
    [
        ("tpe", [], {}, Budget(runs=3), "f:method: method tpe needs a metric, and the file has none"),
        ("cmaes", TWO, {}, Budget(runs=3), "f:method: method cmaes needs one metric, and the file has 2"),
        ("gp", ONE, {}, Budget(), "f:method: .* needs a budget"),
        (
            "grid",
            [],
            {"method": "asha"},
            Budget(),
            "f:prune: prune: asha needs one metric, and the file has none",
        ),
        ("tpe", TWO, {"method": "asha"}, Budget(runs=3), "the file has 2"),
        (
            "grid",
            ONE,
            {"method": "asha", "mn": 3},
            Budget(),
            "f:prune: prune: asha has no setting 'mn'.*did you",
        ),
    ],
)
def test_impossible_search_is_one_line_with_its_place(
    method: str, objectives: Any, prune: Any, budget: Budget, said: str
) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        check(method, objectives, prune, budget, lambda path: f"f:{path[0]}")
    assert "\n" not in str(caught.value)
