"""The value and the step that a run is ranked by."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Any

import pytest

from hostler.spec.job import Job, Objective, from_json, to_json
from hostler.spec.ranking import Judged, judge, rule

ACC = {"last": 0.7, "step": 50, "max": 0.9, "max_step": 40, "min": 0.1, "min_step": 1}
KEPT = {"acc": {"goal": "max", "value": 0.88, "step": 30}}  # keep_best began late


def judged(of: str, goal: str = "max", **facts: Any) -> Judged | None:
    return judge({"metrics": {"acc": ACC}, **facts}, Objective("acc", goal, of))


def test_kept_state_is_ranked_by_its_own_value() -> None:
    assert judged("kept", kept=KEPT) == (0.88, 30, "best")


def test_run_without_kept_state_is_ranked_by_its_last_value() -> None:
    assert judged("kept") == judged("last", kept=KEPT) == (0.7, 50, "last")


def test_state_kept_for_the_other_goal_does_not_count() -> None:
    assert judged("kept", "min", kept=KEPT) == (0.7, 50, "last")


def test_best_is_by_the_goal_with_its_step() -> None:
    assert judged("best") == (0.9, 40, "best")
    assert judged("best", "min") == (0.1, 1, "best")


def test_mean_counts_where_it_is_of_as_many_values() -> None:
    means = {"acc": {"of": 5, "value": 0.8}}
    assert judged("mean:5", means=means) == (0.8, 50, "mean of 5")
    assert judged("mean:3", means=means) == (0.7, 50, "last")


def test_end_of_older_hostler_is_ranked_by_its_last_value() -> None:
    old = {"metrics": {"acc": {"last": 0.7, "step": 50, "max": 0.9, "min": 0.1}}}
    assert judge(old, Objective("acc")) == (0.7, 50, "last")
    assert judge(old, Objective("acc", of="best")) == (0.9, None, "best")
    assert judge({"metrics": {"acc": {"last": 0.7}}}, Objective("acc", of="best")) == (0.7, None, "last")


def test_metric_that_was_not_logged_has_no_value() -> None:
    assert judge({}, Objective("acc")) is None
    assert judge({"metrics": {"loss": ACC}}, Objective("acc")) is None


def test_nan_and_infinities_do_not_count() -> None:
    assert not Judged(nan).counts and not Judged(inf).counts and Judged(0.0).counts
    lost = judge({"metrics": {"acc": {**ACC, "last": nan}}}, Objective("acc", of="last"))
    assert lost is not None and isnan(lost.value) and not lost.counts


def test_step_that_is_no_number_is_unknown() -> None:
    odd = {"metrics": {"acc": {**ACC, "max_step": nan, "step": inf}}}
    assert judge(odd, Objective("acc", of="best")) == (0.9, None, "best")
    assert judge(odd, Objective("acc", of="last")) == (0.7, None, "last")


def test_shown_names_kind_and_step() -> None:
    assert Judged(0.9, 40, "best").shown == "best, step 40"
    assert Judged(0.9).shown == "last"


@pytest.mark.parametrize(
    ("given", "meant"),
    [("kept", "kept"), ("best", "best"), ("last", "last"), ({"mean": 5}, "mean:5"), ("mean:5", "mean:5")],
)
def test_rule_is_read_as_text_or_table(given: Any, meant: str) -> None:
    assert rule(given) == meant


@pytest.mark.parametrize(
    "given", ["median", {"mean": 0}, {"mean": True}, {"mean": 5, "x": 1}, "mean:x", "mean:", 5, None, []]
)
def test_other_rule_is_refused_with_what_to_use(given: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a value to rank by: use kept, best, last or \{mean: 5\}"):
        rule(given)


def test_rule_of_a_newer_hostler_ranks_by_the_last_value() -> None:
    assert judged("median") == judged("mean:many") == (0.7, 50, "last")


def test_job_of_before_has_the_rule_kept() -> None:
    old = to_json(Job("s", ("x",), metric="acc", objectives=(Objective("acc", "min", "best"),)))
    again = from_json(old)
    assert again.objectives[0].of == "best"
    del old["of"], old["objectives"][0]["of"]
    before = from_json(old)
    assert (before.of, before.objectives[0].of, before.ranked_by) == ("kept", "kept", Objective("acc"))
