"""Workers in an engine's queue, in one line: only those that have beaten run."""

from __future__ import annotations

from hostler.backends.base import WorkerInfo
from hostler.cli.look.queued import beating, summed_up


def worker(detail: str, count: int = 1) -> WorkerInfo:
    return WorkerInfo("w", "w", True, detail, count)


def test_worker_runs_only_once_it_has_beaten() -> None:
    three = [worker("runs") for _ in range(3)]
    assert summed_up(three, 3) == "3 run"
    assert summed_up(three, 1) == "1 run, 2 started, no sign of life yet"
    assert summed_up([*three, worker("waits: no room", 4)], 0) == (
        "3 started, no sign of life yet, 4 wait: no room"
    )


def test_heartbeats_of_other_fleets_do_not_count() -> None:
    beats = [{"fleet": "gke/1"}, {"fleet": "gke/2"}, {"fleet": "burst/1"}, {}]
    assert beating("gke", beats) == 3
