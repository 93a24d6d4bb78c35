"""What the page is told of runs."""

from __future__ import annotations

from dataclasses import replace

from hostler.analysis.board import shape
from hostler.records.rows import Row

ROWS = [Row(f"000000{n}-s-x", f"s/{n}", "s", n, "done", {"lr": n}, cost=n * 0.5) for n in range(2)]


def test_the_page_is_told_what_runs_have_cost() -> None:
    assert shape.table(ROWS)["fields"]["cost"] == {"each": [0.0, 0.5]}
    assert shape.row(ROWS[1])["cost"] == 0.5


def test_runs_set_aside_by_a_pruner_are_counted_apart() -> None:
    rung = replace(ROWS[0], state="paused", paused_by="rung")
    found = [rung, replace(rung, trashed=True), replace(rung, paused_by="pause"), replace(rung, state="done")]
    assert shape.kinds({"paused": 2, "done": 1}, found) == {"paused": 1, "done": 1, "parked": 1}
    assert shape.kinds({"paused": 1}, found[:1]) == {"parked": 1}
