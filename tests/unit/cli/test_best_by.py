from __future__ import annotations

import pytest

from hostler.cli.look.best import _groups
from hostler.errors import UsageError
from hostler.records.rows import Row


def row(index: int, section: int, **params: object) -> Row:
    return Row(f"r{index}", f"s/{index}", "s", index, "done", params, section=section)


RANKED = [(9.0, row(3, 2, lr=1)), (8.0, row(0, 1, lr=0.5)), (7.0, row(2, 2, lr=0.5)), (6.0, row(1, 1, lr=1))]


def names(key: str | None) -> list[list[int]]:
    return [[one.index for _, one in group] for _, group in _groups(RANKED, key)]


def test_results_are_grouped_by_section_or_by_any_parameter() -> None:
    assert names(None) == [[3, 0, 2, 1]]
    assert names("section") == [[0, 1], [3, 2]]
    assert names("lr") == [[0, 2], [3, 1]]


def test_best_by_labels_groups_and_joins_runs_without_it() -> None:
    ranked = [*RANKED, (5.0, row(4, 1, optim="adam"))]
    assert [of for of, _ in _groups(ranked, "section")] == ["1", "2"]
    assert [of for of, _ in _groups(ranked, "lr")] == ["0.5", "1", "none"]


def test_a_parameter_that_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match=r"no parameter 'lt' .*known: lr"):
        names("lt")
