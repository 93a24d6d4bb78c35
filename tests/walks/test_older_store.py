"""A store that an older version made, read, resumed and ended by this one, beside workers of that version.

`tests/golden/older_store.tar.xz` holds a sweep that is done, a paused run with its checkpoint, a queued
sweep, and the older hostler itself, as every submission brings it to the store.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import World
from hostler.cli.keep import pack
from hostler.records.run.log import RunKey, RunLog
from hostler.store import open_store

OLDER = Path(__file__).parents[1] / "golden" / "older_store.tar.xz"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.store.mkdir()
    with tarfile.open(OLDER) as archive:
        archive.extractall(made.store, filter="data")
    yield made
    made.close()


def test_runs_of_an_older_store_are_shown_and_pulled(world: World) -> None:
    shown = {row["name"]: row for row in world.run("status", "--json").json}
    assert [shown[f"grid/{n}"]["metrics"]["loss"] for n in range(3)] == [2.0, 4.0, 6.0]
    assert shown["held"]["state"] == "paused" and shown["mixed/11"]["state"] == "queued"
    assert "lr=3" in world.run("best", "grid").out
    assert world.run("pull", "grid/2", "--to", "here").code == 0
    assert json.loads((world.folder / "here/checkpoint/at.json").read_text()) == 3


def test_paused_run_of_an_older_store_continues_there(world: World) -> None:
    answer = world.run("resume", "held")
    assert answer.code == 0, answer
    assert world.run("wait", "held").code == 0
    row = next(row for row in world.run("status", "--json").json if row["name"] == "held")
    assert row["state"] == "done" and row["metrics"]["loss"] == 4.0
    log = world.run("logs", "held").out
    assert log.count('"step": 0,') == 1, "it began anew"


def test_workers_of_both_versions_share_one_sweep(world: World) -> None:
    library = next((world.store / "library").iterdir())
    older = [sys.executable, "-I", str(library), str(world.store), "--sweep", "mixed", "--no-parent"]
    with subprocess.Popen(older, env=world.env, stderr=subprocess.PIPE, text=True) as process:
        newer = world.run("worker", str(world.store), "--sweep", "mixed", "--no-parent")
        assert newer.code == 0, newer
        process.wait(60)
    shown = world.run("status", "--json", "mixed").json
    assert [row["state"] for row in shown] == ["done"] * 12
    assert [row["metrics"]["loss"] for row in shown] == [4.0 * n for n in range(1, 13)]
    store = open_store(str(world.store))
    logs = [RunLog(store, RunKey("mixed", row["id"])).read_on().entries for row in shown]
    assert all([entry["kind"] for entry in entries] == ["claim", "end"] for entries in logs)
    assert len({entries[0]["session"] for entries in logs}) > 1, "one worker did all of it"


def test_older_worker_starts_nothing_of_a_packed_sweep(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack.time, "sleep", lambda seconds: None)
    assert pack.command(("grid",), False, None, str(world.store), as_json=False) == 0
    shown = world.run("status", "--json", "grid").json
    library = next((world.store / "library").iterdir())
    older = [sys.executable, "-I", str(library), str(world.store), "--sweep", "grid", "--no-parent"]
    answer = subprocess.run(older, env=world.env, capture_output=True, text=True, timeout=60)
    assert "written by a newer hostler: grid" in answer.stdout, answer
    assert world.run("status", "--json", "grid").json == shown
    assert not (world.store / "sweeps" / "grid" / "log").exists()


def test_project_of_an_older_version_runs_unchanged(world: World) -> None:
    shutil.copytree(OLDER.parent / "older_project", world.folder, dirs_exist_ok=True)
    answer = world.run("sweep", "-y", "--wait", "--json", "sweep.yaml")
    assert answer.code == 0 and answer.json["runs"] == 4, answer
    assert "lr=0.1" in world.run("best", "older-search").out
    assert world.run("pull", "older-search/1", "--to", "here").code == 0
    assert [path.read_text() for path in (world.folder / "here").rglob("lr.txt")] == ["0.1"]
