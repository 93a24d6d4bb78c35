from __future__ import annotations

import math

from hostler.train.early import column, goal_of, has_diverged, ran_out


def test_patience_runs_out_when_the_best_of_the_last_rows_is_worse_than_the_best() -> None:
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


def test_the_metric_is_a_regular_expression_over_columns() -> None:
    columns = ["train/loss", "test/last/loss", "test/last/accuracy", "test/av/accuracy"]
    assert column(columns, "test/.*/accuracy") == "test/last/accuracy"
    assert column(columns, "val/.*") is None


def test_nan_and_a_large_loss_are_divergence() -> None:
    assert has_diverged(math.nan, 1e6)
    assert has_diverged(math.inf, 1e6)
    assert has_diverged(2.0, 1.0)
    assert not has_diverged(0.5, 1.0)
