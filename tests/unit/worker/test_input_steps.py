"""Inputs of a run on its machine: the checkpoint of a step, and one that was deleted since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler import sweeping
from hostler.errors import MissingError
from hostler.fleet.init_from import begin_from
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.store import Store, open_store
from hostler.worker.prepare import inputs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Run `s`, stopped, with checkpoints of steps 10 and 20."""
    made = open_store(str(tmp_path / "store"))
    job = Job(name="s", command=("x",))
    assert sweeps.submit(made, job)
    key = RunKey("s", job.run_id(0))
    held = claim(made, RunLog(made, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
    assert held is not None
    for n in (1, 2):
        (tmp_path / "w").mkdir(exist_ok=True)
        (tmp_path / "w" / "model.pt").write_text(f"weights {n}")
        facts = {"metric_step": 10 * n}
        checkpoints.save(made, key.run, Place(1, n), tmp_path / "w", lambda f=facts: f, lambda: None)
    held.end("stopped")
    return made


def bring(store: Store, tmp: Path, machine: str, init: dict[str, Any]) -> Path:
    brought = inputs.bring({}, init, "r", store, tmp / machine, lambda line: None)
    assert brought.init is not None
    return brought.init


def test_init_from_a_step_is_that_checkpoint(store: Store, tmp_path: Path) -> None:
    job, _ = begin_from("s@10", Job(name="j", command=("x",)), default_project(tmp_path), store)
    assert job.init["step"] == "10"
    assert (bring(store, tmp_path, "here", dict(job.init)) / "model.pt").read_text() == "weights 1"


def test_input_deleted_since_is_said_in_a_line(store: Store, tmp_path: Path) -> None:
    init = {"run": "s", "step": 10}
    bring(store, tmp_path, "here", init)
    run = sweeps.load(store, "s").run_id(0)
    checkpoints.delete(store, run, Place(1, 1))
    with pytest.raises(MissingError, match=f"checkpoint 1-1 of {run}, .* was deleted since"):
        bring(store, tmp_path, "there", init)
    assert (bring(store, tmp_path, "here", init) / "model.pt").exists()  # it is on this machine still


def test_python_sweep_takes_a_step_as_a_file_does(store: Store, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "t.py").write_text("")
    given = {"project": default_project(tmp_path / "project"), "store": store.url, "start": False}
    with pytest.raises(MissingError, match="s: step 15 is not kept; kept steps: 10, 20"):
        sweeping.sweep("python t.py", {"init": {"run": "s", "step": 15}}, name="two", **given)
    made = sweeping.sweep("python t.py", {"init": [{"run": "s@last"}, {"run": "s@10"}]}, name="two", **given)
    assert [row.params["init"]["run"] for row in made.rows()] == ["s@last", "s@10"]
