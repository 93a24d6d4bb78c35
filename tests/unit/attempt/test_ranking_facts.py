"""What the entry that closes an attempt holds, so that a run is ranked without its curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.attempt.delivery import Delivery, kept_states
from hostler.attempt.heartbeat import Heartbeat
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.records import rows
from hostler.records.body import Record
from hostler.records.run import handoff
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point, pack
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job, Objective
from hostler.store.memory import MemoryStore

TIMING = Timing(wait_min=0.0, wait_max=0.0)
KEPT = {"acc": {"goal": "max", "value": 0.9, "step": 1}}


class Scene:
    def __init__(self, root: Path, of: str = "kept") -> None:
        self.store, self.folder = MemoryStore(), Handoff(root)
        self.job = Job("s", ("x",), metric="acc", of=of)
        sweeps.submit(self.store, self.job)
        self.key = RunKey("s", self.job.run_id(0))
        self.folder.make({})
        attempt = claim(self.store, RunLog(self.store, self.key), 60.0, self.clock, Claim("a"))
        assert attempt is not None
        writer = MetricWriter(self.store, self.key.run, attempt.number)
        uploader = Uploader(self.folder.metrics, writer, TIMING, self.clock, self.clock)
        status = AttemptStatus(attempt, TIMING, self.clock, lambda line: None)
        by = self.job.looked_at
        self.delivery = Delivery(
            self.store, attempt, self.folder, uploader, status, attempt.state, objectives=by
        )
        values = [Point(step, 0.0, {"acc": value}) for step, value in enumerate([0.2, 0.9, 0.4, 0.6])]
        self.folder.metrics.write_bytes(pack(values))

    def clock(self) -> float:
        return 0.0

    def end(self, state: str = "done") -> Record:
        self.delivery.uploader.exited()
        self.delivery.close(self.delivery.filled(Outcome(state), 5.0))
        assert self.delivery.attempt.ended is not None
        return self.delivery.attempt.ended[1]

    def row(self, by: Objective | None = None) -> rows.Row:
        return rows.rows(self.store, ["s"], by=by)[0]


def test_end_holds_the_steps_of_the_extremes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    end = scene.end()
    assert end["metrics"]["acc"] == {
        "min": 0.2,
        "min_step": 0,
        "max": 0.9,
        "max_step": 1,
        "last": 0.6,
        "step": 3,
    }
    assert "kept" not in end and "means" not in end
    assert scene.row().judged == (0.6, 3, "last")
    assert scene.row(Objective("acc", "max", "best")).judged == (0.9, 1, "best")
    assert scene.row(Objective("acc", "min", "best")).judged == (0.2, 0, "best")


def test_end_holds_the_state_that_is_kept(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    handoff.write(scene.folder.best, KEPT)
    assert scene.end()["kept"] == KEPT
    assert scene.row().judged == (0.9, 1, "best")
    assert scene.row(Objective("acc", "max", "last")).judged == (0.6, 3, "last")


def test_end_holds_the_mean_where_runs_are_ranked_by_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path, of="mean:2")
    assert scene.end()["means"] == {"acc": {"of": 2, "value": 0.5}}
    assert scene.row().judged == (0.5, 3, "mean of 2")


def test_running_run_is_ranked_by_its_heartbeat(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.delivery.uploader.tick()
    heart = Heartbeat(scene.store, "a", TIMING, {}, scene.clock)
    heart.hold(scene.delivery)
    heart.beat()
    assert scene.row().judged == (0.6, 3, "last")
    assert scene.row(Objective("acc", "max", "best")).judged == (0.9, 1, "best")
    handoff.write(scene.folder.best, KEPT)
    heart.beat()
    assert scene.row().judged == (0.9, 1, "best")


def test_early_stop_is_the_reason_of_a_done_run_alone(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    handoff.write(scene.folder.early, {"why": "early stopping", "step": 3})
    assert scene.end()["why"] == "early stopping"
    row = scene.row()
    assert (row.state, row.why, row.step) == ("done", "early stopping", 3)
    other = Scene(tmp_path / "other")
    handoff.write(other.folder.early, {"why": "early stopping", "step": 3})
    assert "why" not in other.end("failed")


@pytest.mark.parametrize(
    "row",
    [
        None,
        {},
        {"goal": "max", "value": 0.9},
        {"goal": 1, "value": 0.9, "step": 1},
        {"goal": "max", "value": float("nan"), "step": 1},
        {"goal": "max", "value": "much", "step": 1},
        {"goal": "max", "value": 0.9, "step": True},
    ],
)
def test_kept_state_of_another_form_is_left_out(row: Any) -> None:
    assert kept_states({"a": row, **KEPT}) == KEPT
    assert kept_states([row]) == {}
