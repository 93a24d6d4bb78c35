from __future__ import annotations

from pathlib import Path

from hostler.analysis import foreign
from hostler.analysis.board.curvebook import CurveBook
from hostler.records import rows
from hostler.records.rows import Row
from hostler.records.sweep import sweeps
from hostler.spec.tracking import TENSORBOARD
from hostler.trackers.exporting import Exporter
from seen_world import Seen, learning


def reused(seen: Seen) -> Row:
    """A run whose end is that of an equal one in another sweep."""
    first, second = (seen.submit(name, [{"lr": 0.01}]) for name in ("first", "second"))
    seen.claim(first, 0)
    seen.end(first, 0, "done", seen.curve(first, 0, learning({"lr": 0.01}, 7)))
    seen.claim(second, 0)
    seen.end(second, 0, "done", copy_of=first.run_id(0))
    (row,) = rows.rows(seen.store, [second.name])
    return row


def test_run_that_reuses_a_result_exports_with_its_curves(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    row = reused(seen)
    job = sweeps.load(seen.store, "second")
    options = {"dir": str(tmp_path / "boards")}
    done = Exporter(seen.store, job, TENSORBOARD, options, tmp_path / "work").export(row)
    (run,) = foreign.past(TENSORBOARD, options["dir"])
    assert done.points == len(run.points) == 7


def test_run_that_reuses_a_result_shows_curves_in_the_dashboard(tmp_path: Path) -> None:
    seen = Seen(tmp_path)
    assert CurveBook(seen.store).of(reused(seen))["accuracy"].total == 7
