"""A secret that is missing, empty or gone: one line, and nothing half-made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_world import World
from hostler.backends import privatefile
from hostler.backends.privatefile import PrivateContent

GRID = "name: grid\ncommand: python train.py\nparameters: {lr: [1]}\n"
SAYS = "import os\nprint('it has', len(os.environ['MY_TOKEN']))\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write("hostler.yaml", "name: p\ncommand: python train.py\nsecrets: [MY_TOKEN]\n")
    made.write("train.py", SAYS)
    made.write("grid.yaml", GRID)
    return made


def worker(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hostler.worker", str(world.store), *words]
    return subprocess.run(command, env=world.env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "not set here: MY_TOKEN (named under `secrets:`)"),
        ("", "not set here: MY_TOKEN"),
        (" \n", "not set here: MY_TOKEN"),
        ("x" * 65537, "has 65537 bytes"),
        ("\udcff-not-text", "is not text in UTF-8"),
    ],
    ids=["missing", "empty", "blank", "large", "no text"],
)
def test_it_is_refused_before_anything_is_submitted(world: World, value: str | None, said: str) -> None:
    given = {} if value is None else {"MY_TOKEN": value}
    for words in (("run",), ("sweep", "-y", "grid.yaml"))[: 2 if value is None else 1]:
        answer = world.run(*words, **given)
        assert answer.code == 2 and said in answer.err and answer.err.count("hostler: ") == 1, answer.err
    assert not list(world.store.rglob("sweeps/*/spec/*")) and not list(world.store.rglob("fleets/*"))


def test_the_hint_names_all_that_are_missing(world: World) -> None:
    world.write("hostler.yaml", "name: p\ncommand: python train.py\nsecrets: [MY_TOKEN, HERE, OTHER]\n")
    answer = world.run("run", HERE="x")
    assert answer.code == 2 and "export MY_TOKEN=… OTHER=…, then submit again" in answer.err, answer.err


def test_only_a_worker_that_has_the_secret_file_takes_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.run("sweep", "--no-start", "-y", "grid.yaml", MY_TOKEN="hush-hush").code == 0
    monkeypatch.setenv("HOSTLER_CACHE", world.env["HOSTLER_CACHE"])
    place = privatefile.folder() / privatefile.name_of("tau", "1")
    gone = worker(world, "--no-parent", "--secrets", f"file:{place}")
    assert (
        gone.returncode == 1
        and f"{place} does not exist here (check that this machine sees that folder; hostler up"
        in gone.stderr
    )
    assert world.run("status", "--json", "grid").json[0]["state"] == "queued"
    privatefile.keep(place.name, PrivateContent({"MY_TOKEN": "hush-hush"}))
    done = worker(world, "--secrets", f"file:{place}")
    assert done.returncode == 0 and not place.exists(), done.stderr
    assert "it has 9" in world.run("logs", "grid").out
    late = worker(world, "--no-parent", "--secrets", f"file:{place}")
    assert late.returncode == 0 and "no run is left for this worker" in late.stdout, late.stderr


def test_a_run_whose_worker_has_no_such_secret_says_which(world: World) -> None:
    world.write("hostler.yaml", "name: p\nretries: 0\nsecrets: [MY_TOKEN]\n")
    assert world.run("sweep", "--no-start", "-y", "grid.yaml", MY_TOKEN="hush-hush").code == 0
    worker(world, "--no-parent")
    said = world.run("errors", "grid").out
    assert "the secret MY_TOKEN is not set on this machine" in said and "hostler up" in said, said
