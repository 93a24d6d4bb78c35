from __future__ import annotations

from typing import Any

import pytest

from hostler.errors import SpecError
from hostler.search.asha import Asha
from hostler.search.pruners import Hyperband, Median, Patience, pruner
from hostler.spec.pruning import Prune, parse


@pytest.mark.parametrize("nothing", [None, False, "none"])
def test_nothing_is_nothing(nothing: Any) -> None:
    assert parse(nothing) is None


def test_a_name_is_the_method_with_its_defaults() -> None:
    assert parse("asha") == Prune("asha")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"method": "asha", "min": 2, "factor": 4, "max": 64}, Asha(2, 4, 64, True)),
        ({"method": "asha", "pause": False}, Asha(1, 3, None, False)),
        ({"method": "hyperband", "max": 81}, Hyperband(1, 81, 3)),
        ({"method": "median", "every": 2, "others": 3}, Median(1, 2, 3)),
        ({"method": "patience", "patience": 4, "delta": 0.1}, Patience(4, 0.1, 0)),
    ],
)
def test_a_map_sets_what_the_method_knows(given: dict[str, Any], made: object) -> None:
    spec = parse(given)
    assert spec is not None
    assert pruner(spec) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ahsa", "did you mean 'asha'"),
        ("best", "known: asha, hyperband, median, patience"),
        ({"min": 1}, "no method named None"),
        ({"method": "asha", "patience": 3}, "asha has no setting 'patience'"),
        ({"method": "median", "evry": 3}, "did you mean 'every'"),
        ({"method": "asha", "min": 0}, "at least 1"),
        ({"method": "asha", "min": 1.5}, "whole number"),
        ({"method": "asha", "min": "two"}, "is a number"),
        ({"method": "asha", "factor": 1}, "at least 2"),
        ({"method": "asha", "pause": "no"}, "true or false"),
        ({"method": "asha", "min": 9, "max": 9}, "not above min"),
        ({"method": "hyperband"}, "needs max"),
        ({"method": "patience", "delta": -1}, "delta is 0 or more, not -1"),
        ([1], "no method named"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(given: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse(given)
