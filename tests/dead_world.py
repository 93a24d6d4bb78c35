"""A script by hand that was killed: what it left in the cache of its machine, its claim in the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hostler import env
from hostler.attempt import dead_scripts
from hostler.records.checkpoint import checkpoints, outputs
from hostler.records.rows import Row, rows
from hostler.records.run import handoff, heartbeats, holder
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Lost
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.series import metrics
from hostler.records.series.metrics import FragmentCache, MetricWriter
from hostler.records.series.points import Point, pack
from hostler.records.sweep import sweeps
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.spec.job import Job
from hostler.store.base import Store

DEAD = {"pid": 1 << 30, "start": "1", "place": holder.here()}
POINTS = [Point(n, 100.0 + n, {"loss": 1.0 / (n + 1)}) for n in range(20)]


class Scene:
    """A script by hand that was killed: its claim in the store, its folder in the cache."""

    def __init__(self, store: Store) -> None:
        self.store, self.said = store, list[str]()
        job = Job(name="train", title="train", command=("python", "train.py"), by_hand=True, runs=({},))
        sweeps.submit(store, job)
        self.key = RunKey("train", job.run_id(0))
        self.folder = Handoff(env.script_dirs()[0] / f"{self.key.run}-1-aaaaaa")
        self.folder.make({})
        self.note()
        facts = {"host": "here", "holder": DEAD, "folder": str(self.folder.folder)}
        assert claim(store, self.log(), 60.0, lambda: 0.0, Claim("a", facts=facts)) is not None
        heartbeats.beat(store, "a", 1, {})
        MetricWriter(store, self.key.run, 1).write(POINTS[:5])
        self.folder.metrics.write_bytes(pack(POINTS))
        keeper = Checkpointer(self.folder.checkpoint, policy=SavePolicy(every_steps=1), say=self.said.append)
        keeper.save(7, {"n": 7}, wait=True)
        (self.folder.output / "table.csv").write_text("a,b")

    def note(self, **more: Any) -> None:
        sweep, run = self.key.sweep, self.key.run
        note = {"store": self.store.url, "sweep": sweep, "run": run, "attempt": 1, "holder": DEAD, **more}
        handoff.write(self.folder.script, note)

    def log(self) -> RunLog:
        return RunLog(self.store, self.key).read_on()

    @property
    def kinds(self) -> list[str]:
        return [entry["kind"] for entry in self.log().entries]

    @property
    def state(self) -> RunState:
        return fold(self.log().entries)

    @property
    def row(self) -> Row:
        [row] = rows(self.store)
        return row

    @property
    def is_there(self) -> bool:
        return self.folder.folder.exists()

    def deliver(self) -> None:
        dead_scripts.deliver(self.store, self.said.append)

    def steps(self) -> list[int]:
        return [point.step for point in metrics.read(self.store, self.key.run, self.state.attempt)]

    def fragments(self) -> list[int]:
        """Steps of all fragments, shown or not."""
        found = FragmentCache().update(self.store, self.key.run)
        return [point.step for fragment in found for point in fragment.points]

    def saved(self) -> list[str]:
        return [place.name for place in checkpoints.committed(self.store, self.key.run)]

    def take_over(self, session: str = "b") -> None:
        """Another machine claims the run."""
        assert claim(self.store, self.log(), 60.0, lambda: 0.0, Claim(session, Lost(1, False))) is not None

    def check_whole(self, target: Path) -> None:
        """Everything was delivered once, and the run can be started again."""
        assert self.kinds == ["claim", "release"] and self.state.state == "queued"
        assert self.steps() == self.fragments() == list(range(20))
        restored = checkpoints.restore_newest(self.store, self.key.run, target, before=9)
        assert restored is not None and restored.position == 20
        assert [path.name for path in target.iterdir()] == ["step-000000000007"]
        kept = outputs.newest(self.store, self.key.run)
        assert kept is not None and [file["name"] for file in kept[1]] == ["table.csv"]
        assert heartbeats.etags(self.store) == {} and os.listdir(self.folder.folder.parent) == []
