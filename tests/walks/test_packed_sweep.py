"""A sweep that is packed reads as before by every verb, goes on after a retry, and is packed again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cli_world import Answer, World, eventually
from hostler.cli.keep import pack

SWEEP = """
name: grid
command: python train.py
metric: {name: loss, goal: min}
retries: 0
parameters:
  epochs: [1, 2, 3]
  fail: ["", broken]
"""
READERS = ("status --json grid", "show --json grid/1", "logs grid/2", "best grid", "errors grid")
ALL_READERS = (
    *READERS,
    "status",
    "show grid/1",
    "logs grid/3",
    "best --json grid",
    "errors --json",
    "diff grid/0 grid/2",
    "cost --json",
    "df",
    "wait grid",
    "attach grid/2",
    "plan --json sweep.yaml",
    "sweep -n sweep.yaml",
    "gc -n",
    "metrics grid",
    "archive",
    "doctor --json",
    "pull grid/2 --to ../there -y",
    "push grid/2 ../models -y",
    "report grid -o ../page.html",
    "export grid --to tensorboard --with dir=../boards",
)
CHANGES = re.compile(r"\d+ ms\)|[\d.]+ GB free|beat_age.*")


NAPS = """
name: grid
command: python train.py
parameters:
  nap: [{naps}]
"""
NAPPER = """
import os, sys, time
attempt = int(os.environ["HOSTLER_ATTEMPT"])
print("attempt", attempt)
time.sleep(float(sys.argv[2]) / attempt**9)
"""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.write("hostler.yaml", "name: p\n")
    yield made
    made.close()


@pytest.fixture
def world(empty: World) -> World:
    empty.write("sweep.yaml", SWEEP)
    assert empty.run("sweep", "-y", "--wait", "sweep.yaml").code == 1  # half of it fails
    return empty


def pack_now(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`hostler pack grid`, without its pause; files of logs that are left."""
    monkeypatch.setattr(pack.time, "sleep", lambda seconds: None)
    assert pack.command(("grid",), False, None, str(world.store), as_json=False) == 0
    return [path.name for path in world.store.rglob("*.json") if path.parent.name in ("log", "ends", "env")]


def read(world: World, readers: Sequence[str]) -> dict[str, Answer]:
    found = {words: world.run(*words.split()) for words in readers}
    return {
        words: Answer(one.code, CHANGES.sub("", one.out), CHANGES.sub("", one.err))
        for words, one in found.items()
    }


@pytest.mark.parametrize("readers", [READERS, pytest.param(ALL_READERS, marks=pytest.mark.soak)], ids=len)
def test_verbs_read_a_packed_sweep_as_before(
    world: World, monkeypatch: pytest.MonkeyPatch, readers: Sequence[str]
) -> None:
    before = read(world, readers)
    assert pack_now(world, monkeypatch) == []
    for words, answer in read(world, readers).items():
        assert answer == before[words], words


def test_retry_of_a_packed_run_runs_and_is_packed_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.run("status", "--json", "grid").json
    assert pack_now(world, monkeypatch) == []
    assert world.run("retry", "grid/1").code == 0
    assert world.run("wait", "grid/1").code == 1
    assert pack_now(world, monkeypatch) == []
    after = world.run("status", "--json", "grid").json
    assert [row["attempt"] for row in after] == [1, 2, 1, 1, 1, 1]
    assert [row["state"] for row in after] == [row["state"] for row in before]
    assert (
        world.run("logs", "grid/1").out.count("ValueError: broken") == 4
    )  # a line each of traceback and reason


def test_resume_and_edit_of_a_packed_sweep_run(empty: World, monkeypatch: pytest.MonkeyPatch) -> None:
    empty.write("train.py", NAPPER)
    empty.write("sweep.yaml", NAPS.format(naps="0, 60"))
    assert empty.run("sweep", "-y", "sweep.yaml").code == 0
    eventually(lambda: empty.in_state("done") == empty.in_state("running") == 1)
    assert empty.run("stop", "grid/1").code == 0
    eventually(lambda: empty.in_state("stopped") == 1)
    assert pack_now(empty, monkeypatch) == []
    assert empty.run("resume", "grid/1").code == 0
    assert empty.run("wait", "grid").code == 0
    assert pack_now(empty, monkeypatch) == []
    empty.write("sweep.yaml", NAPS.format(naps="0, 60, 0.1"))
    edited = empty.run("sweep", "-y", "--wait", "sweep.yaml")
    assert edited.code == 0, edited
    assert pack_now(empty, monkeypatch) == []
    rows = empty.run("status", "--json", "grid").json
    assert [(row["state"], row["attempt"]) for row in rows] == [("done", 1), ("done", 2), ("done", 1)]
    assert empty.run("logs", "grid/2").out == "attempt 1\n"
    assert empty.run("sweep", "-y", "sweep.yaml").code == 0  # nothing in it is new
    assert len(empty.run("status", "--json", "grid").json) == 3


def test_status_starts_the_packing_of_an_old_sweep(world: World) -> None:
    before = world.run("status", "--json", "grid").json
    seals = world.store / "sweeps" / "grid" / "sealed"
    assert not seals.exists()
    world.write("hostler.yaml", "name: p\npack: 0.1s\n")
    assert world.run("status", "--json", "grid").json == before
    eventually(seals.exists)
    [packer] = world.processes(holding=" pack --all --older 0.1s ")
    assert os.getsid(packer) == packer, "it outlives the terminal"
    assert world.run("status", "--json", "grid").json == before
    assert world.processes(holding=" pack --all ") == [packer], "one look a day"
