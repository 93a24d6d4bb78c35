"""Values of a search's runs, and the importance of parameters, for the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hostler.analysis.board.live import LiveSweep
from hostler.analysis.board.searchdata import search
from hostler.analysis.plots.source import is_logarithmic
from hostler.records.rows import Row
from hostler.spec import space, spans
from hostler.spec.job import Job
from hostler.spec.ranking import Judged
from hostler.spec.rounds import Round


def sweep(runs: list[tuple[dict[str, Any], float]], **facts: Any) -> LiveSweep:
    params = tuple(given for given, _ in runs)
    job = Job(name="s", command=("python",), runs=params, **{"metric": "acc", "goal": "max", **facts})
    one = LiveSweep("s", whole=True, expected=len(runs), job=job)
    for index, (given, value) in enumerate(runs):
        row = Row(
            f"{index:07d}-s-x", f"s/{index}", "s", index, "done", given,
            metrics={"acc": value, "loss": -value}, metric="acc", judged=Judged(value, 3, "best"),
        )  # fmt: skip
        one.rows[row.id] = row
    return one


def grid(value: Any) -> list[tuple[dict[str, Any], float]]:
    return [({"lr": lr, "seed": seed, "same": 1}, value(lr, seed)) for lr in (1, 2, 3) for seed in (0, 1, 2)]


def test_parameter_that_decides_the_metric_explains_it() -> None:
    found = search(sweep(grid(lambda lr, seed: lr + seed / 100)))
    assert found["importance"]["lr"] > 0.9
    assert found["importance"]["seed"] < 0.1
    assert found["varying"] == ["lr", "seed"]
    assert found["label"] == "acc (best)"
    assert len(found["values"]) == 9


def test_pruned_and_running_runs_do_not_blur_importance() -> None:
    one = sweep([*grid(lambda lr, seed: lr), *grid(lambda lr, seed: -99.0)])
    for row in list(one.rows.values())[9:]:
        one.rows[row.id] = replace(row, state="pruned")
    found = search(one)
    assert found["importance"]["lr"] > 0.9
    assert (found["compared"], len(found["values"])) == (9, 18)


def test_runs_without_a_finite_value_are_left_out() -> None:
    found = search(sweep([({"lr": 1}, math.nan), ({"lr": 2}, 0.5), ({"lr": 3}, math.inf)]))
    assert list(found["values"].values()) == [0.5]
    assert found["importance"] == {}


def test_search_without_values_says_why() -> None:
    assert search(sweep([({"lr": 1}, math.nan)]))["why"].startswith("acc is NaN")
    assert search(LiveSweep("s", whole=True, expected=0))["why"] == "no run has logged a metric yet"


def test_another_metric_is_taken_by_its_last_values() -> None:
    found = search(sweep(grid(lambda lr, seed: lr)), "loss")
    assert (found["metric"], found["goal"], found["label"]) == ("loss", "min", "loss")
    assert min(found["values"].values()) == -3


def test_few_whole_runs_are_judged_together_with_the_others() -> None:
    one = sweep([*grid(lambda lr, seed: lr), *grid(lambda lr, seed: lr)])
    for row in list(one.rows.values())[7:]:
        one.rows[row.id] = replace(row, state="paused")
    assert search(one)["compared"] == 18


def test_axis_is_logarithmic_where_the_file_says_so() -> None:
    given = {"lr": {"min": 1e-3, "max": 1, "log": True}, "noise": {"min": 0, "max": 0.8}, "model": ["a", "b"]}
    searched = sweep([], search=space.to_json(space.parse(given, method="tpe")), method="tpe")
    assert search(searched)["scales"] == {"lr": True, "noise": False}
    drawn = space.parse(given, method="random", runs=3)
    one = sweep([], rounds=(Round(drawn, spans.whole(drawn.count), ("x",)),))
    assert search(one)["scales"] == {"lr": True, "noise": False}


def test_axis_without_a_range_is_logarithmic_over_wide_positive_values() -> None:
    cases = [([1, 10, 100], None), ([1, 10, 100], False), ([1, 2], None), ([1, 2], True), ([0, 9], True)]
    assert [is_logarithmic(values, given) for values, given in cases] == [True, False, False, True, False]
