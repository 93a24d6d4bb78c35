"""`hostler cost`, over a store with two fleets and one sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hostler.cli import here
from hostler.cli.look import cost_explained, status
from hostler.cli.main import declared
from hostler.records.launch import launches, ledger
from hostler.records.launch.launches import Generation, Stay
from hostler.records.launch.settlement import Spend
from hostler.records.run import heartbeats
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Budget, Job
from hostler.store.folder import FolderStore


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path / "store")
    job = Job(name="s", command=("x",), runs=({"i": 1}, {"i": 2}), budget=Budget(cost=20))
    sweeps.submit(store, job)
    log = RunLog(store, RunKey("s", job.run_id(0))).read_on()
    log.append({"kind": "claim", "session": "w"})
    log.append({"kind": "end", "state": "done", "attempt": 1, "cost": 0.6})
    now = heartbeats.store_time(store) + 1
    for fleet, used in (("lab", 0.6), ("desk", 0.0)):
        ledger.reserve(store, "s", 20, fleet=fleet, generation=1, launch=fleet, most=5)
        one = Generation(fleet, 1, fleet, 1, 3.6, now, None, ("s",), {"s": 5.0}, counted=True)
        launches.begin(store, one)
        launches.note(store, fleet, 1, Stay("w", 1000, over=True, final=True, used=used))
    return store


def run(store: FolderStore, *words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(declared("cost"), ["--store", str(store.url), *words], standalone_mode=False)
    if answer.exception:
        raise answer.exception
    return answer.exit_code, answer.output


def test_sweeps_and_launches_are_told(store: FolderStore) -> None:
    assert run(store)[1].splitlines() == [
        "s: 2.00 spent, 8.00 more reserved, budget 20.00, 10.00 left",
        "desk/1: 1.00 for 16m 40s of workers at 3.60 an hour (runs 0.00, idle 1.00); over",
        "lab/1: 1.00 for 16m 40s of workers at 3.60 an hour (runs 0.60, idle 0.40); over",
    ]


def test_a_named_sweep_has_its_runs(store: FolderStore) -> None:
    assert run(store, "s")[1].splitlines()[-1] == "  s/0: 0.60 (done)"
    assert run(store, "s/1")[1].splitlines()[-1].startswith("lab/1"), "nobody has had it"


@pytest.mark.parametrize("name", ["lab", "lab/1"])
def test_a_fleet_is_told_alone(store: FolderStore, name: str) -> None:
    [line] = run(store, name)[1].splitlines()
    assert line.startswith("lab/1: 1.00")


def test_programs_get_all_of_it(store: FolderStore) -> None:
    import json

    said: dict[str, Any] = json.loads(run(store, "--json")[1])
    assert [one["idle"] for one in said["fleets"]] == [1.0, 0.4]
    assert said["runs"] == [{"run": said["runs"][0]["run"], "name": "s/0", "state": "done", "cost": 0.6}]
    assert said["sweeps"][0]["left"] == 10


def test_without_a_price_it_says_how_to_give_one(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "none")
    sweeps.submit(store, Job(name="s", command=("x",)))
    assert "no fleet here has a price" in run(store)[1]


def test_nothing_to_explain_is_one_line(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "none")
    sweeps.submit(store, Job(name="s", command=("x",)))
    code, out = run(store, "--explain")
    assert code == 0 and out.startswith("hostler: no fleet here has a price") and out.count("\n") == 1, out


def test_resume_hint_after_a_cap_names_the_last_fleet(store: FolderStore) -> None:
    later = heartbeats.store_time(store) + 60
    launches.begin(store, Generation("burst", 1, "x", 1, 3.6, later, None, ("s",)))
    assert status.resuming(store, "s") == "hostler resume --on burst s"
    assert status.resuming(store, "other") == "hostler resume other"


@pytest.mark.parametrize("workers", [10**12, 0, -5])
def test_launch_of_absurd_size_is_not_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: FolderStore, workers: int
) -> None:
    """Memory is taken for each worker of a simulation."""
    (tmp_path / "hostler.yaml").write_text(
        "command: x\nfleets: {big: {backend: local, workers: 2, price: 1}}\n"
    )
    monkeypatch.chdir(tmp_path)
    here.project.cache_clear()  # another test's, in this process
    launches.begin(store, Generation("big", 1, "big", workers, 1.0, sweeps=("s",)))
    launches.note(store, "big", 1, Stay("w", 1000, over=True, final=True))
    answer = CliRunner().invoke(declared("cost"), ["--store", str(store.url), "--explain"])
    assert answer.exit_code == 0, answer.exception
    here.project.cache_clear()
    assert f"big/1: nothing is simulated: {workers:,} workers" in answer.stderr


def test_launch_that_cost_nothing_is_given_no_advice(store: FolderStore) -> None:
    said: list[str] = []
    none = Spend(Generation("big", 1, "big", 2, 1.0), 0.0, 0.0, over=True)
    lab = Spend(Generation("lab", 1, "lab", 1, 3.6), 1.0, 0.3, over=True)
    assert cost_explained.advice(store, [none, lab], said.append) == {}
    assert [line.partition(":")[0] for line in said] == ["lab/1"]  # whose fleet no file here knows
