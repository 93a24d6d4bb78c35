"""What the page is told of runs."""

from __future__ import annotations

from hostler.analysis.board import shape
from hostler.records.rows import Row

ROWS = [Row(f"000000{n}-s-x", f"s/{n}", "s", n, "done", {"lr": n}, cost=n * 0.5) for n in range(2)]


def test_the_page_is_told_what_runs_have_cost() -> None:
    assert shape.table(ROWS)["fields"]["cost"] == {"each": [0.0, 0.5]}
    assert shape.row(ROWS[1])["cost"] == 0.5
