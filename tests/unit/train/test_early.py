from __future__ import annotations

import math

import pytest

from hostler.errors import SpecError
from hostler.train.early import goal_of, has_diverged, ran_out, watched


def test_patience_ends_when_the_last_rows_best_is_worse() -> None:
    assert not ran_out([1, 3, 2], 2, "max")
    assert ran_out([3, 1, 2], 2, "max")


def test_the_direction_is_the_metrics() -> None:
    assert ran_out([1, 3, 2], 2, "min")
    assert not ran_out([3, 2, 1], 2, "min")


def test_without_patience_it_never_ends() -> None:
    assert not ran_out([3, 2, 1, 0], None, "max")


def test_losses_are_to_be_small_unless_told() -> None:
    assert goal_of("test/.*/loss", None) == "min"
    assert goal_of("test/.*/accuracy", None) == "max"
    assert goal_of("test/.*/loss", "max") == "max"


COLUMNS = ["train/loss", "test/last/loss", "test/last/accuracy", "test/av/accuracy"]
LAST, AV = "test/last/accuracy", "test/av/accuracy"


def test_the_metric_is_a_regular_expression_over_columns() -> None:
    assert watched(COLUMNS, "test/.*/accuracy", None).columns == (LAST, AV)
    assert watched(COLUMNS, "test.*loss", None) == watched(COLUMNS, "^test/last/loss$", "min")
    assert watched(COLUMNS, "val/.*", None).columns == ()
    with pytest.raises(SpecError, match="is not a regular expression"):
        watched(COLUMNS, "test/(", None)


def test_of_several_columns_a_row_is_worth_its_best_one() -> None:
    both = watched(COLUMNS, "accuracy", None)
    assert both.best_of({LAST: 0.1, AV: 0.3}) == (AV, 0.3)
    assert both.best_of({LAST: 0.1, AV: math.nan}) == (LAST, 0.1)
    assert both.best_of({LAST: math.nan, "train/loss": 1.0}) is None


def test_the_best_row_is_the_largest_or_the_smallest() -> None:
    rows = [{"train/loss": value} for value in (3.0, 1.0, 2.0)]
    least, most = watched(COLUMNS, "train/loss", None), watched(COLUMNS, "train/loss", "max")
    assert [least.is_best(rows[: n + 1]) for n in range(3)] == [True, True, False]
    assert [most.is_best(rows[: n + 1]) for n in range(3)] == [True, False, False]
    assert not least.is_best([*rows, {"train/loss": math.nan}])


def test_patience_of_several_columns_ends_when_none_improves() -> None:
    both = watched(COLUMNS, "accuracy", None)
    rows = [{LAST: 0.9, AV: 0.1}, {LAST: 0.2, AV: 0.2}, {LAST: 0.3, AV: 0.3}]
    assert not both.ran_out(rows, 2)
    assert both.ran_out([*rows, {LAST: 0.3, AV: 0.2}, {LAST: 0.3, AV: 0.1}], 2)


def test_what_is_no_number_is_no_progress() -> None:
    assert ran_out([1.0, math.nan, math.nan], 2, "max")
    assert not ran_out([math.nan, math.nan, 1.0], 2, "min")


def test_nan_and_a_large_loss_are_divergence() -> None:
    assert has_diverged(math.nan, 1e6)
    assert has_diverged(math.inf, 1e6)
    assert has_diverged(2.0, 1.0)
    assert not has_diverged(0.5, 1.0)
