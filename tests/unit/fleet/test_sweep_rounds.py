"""A round that drops runs: what was taken while it was written is not among them."""

from __future__ import annotations

from pathlib import Path

from hostler.backends.project_file import parse_sweep
from hostler.fleet.sweep import Swept, draft_sweep, submit_sweep
from hostler.records.run import heartbeats
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.files.yaml12 import Document
from hostler.spec.project import Project
from hostler.store.memory import MemoryStore


class Scene:
    def __init__(self, root: Path) -> None:
        (root / "train.py").write_text("")
        self.root, self.store, self.waits = root, MemoryStore(), list[float]()

    def submit(self, rates: list[int]) -> Swept:
        keys = {"name": "s", "command": "python train.py", "parameters": {"lr": rates}}
        project = Project(root=self.root, name="p", store="memory:")
        file = parse_sweep(Document("s.yaml", keys, {}), project, self.root / "s.yaml")
        return submit_sweep(self.store, file, draft_sweep(file), pause=self._pause)

    def _pause(self, seconds: float) -> None:
        """A worker with the round before in its hands takes a run."""
        self.waits.append(seconds)
        job = sweeps.load(self.store, "s")
        assert claim(self.store, RunLog(self.store, RunKey("s", job.run_id(2))), 60, lambda: 0.0, Claim())


def test_what_a_worker_took_meanwhile_has_started_and_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.submit([1, 2, 3, 4])
    heartbeats.beat(scene.store, "w", 1, {})
    done = scene.submit([1, 5])
    assert len(scene.waits) == 1 and scene.waits[0] > 1.0
    assert (list(done.edit.dropped), list(done.edit.left), list(done.edit.new)) == ([1, 3], [2], [4])
    newest, version = sweeps.load_version(scene.store, "s")
    assert (list(newest.dropped), version, done.version) == ([1, 3], 3, 3)


def test_edit_without_drops_or_workers_does_not_wait(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.submit([1, 2])
    scene.submit([1])
    heartbeats.beat(scene.store, "w", 1, {})
    scene.submit([1, 2, 3])
    assert not scene.waits
