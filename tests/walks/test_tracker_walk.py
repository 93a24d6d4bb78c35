"""Runs in tracking tools, as a person meets them: from `trackers:` in the file to the tool and back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hostler
from cli_world import World, eventually
from hostler.analysis import foreign
from hostler.records.rows import rows
from hostler.records.run import tracked
from hostler.store import open_store
from hostler.trackers.past import Past

BY_HAND = """
import os, sys, time
import hostler
asked = {"tensorboard": {"dir": sys.argv[1]}}
with hostler.start({"lr": 0.1}, trackers=asked, save_every="1 steps") as run:
    for step in run.steps(30):
        run.log(step=step, loss=1 / (step + 1))
        time.sleep(0.02)
        if step == 20 and not os.path.exists("go"):
            print("twenty", flush=True)
            time.sleep(600)
    run.finish(answer=42)
"""
FLAKY = """
import json, os, sys
print(json.dumps({"step": 1, "loss": 0.5}), flush=True)
if not os.path.exists(sys.argv[-1]):
    open(sys.argv[-1], "w").close()
    sys.exit(3)
"""
ALL = [(step, round(1 / (step + 1), 4)) for step in range(30)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def curve(run: Past) -> list[tuple[int, float]]:
    return sorted((p.step, round(p.values["loss"], 4)) for p in run.points if "loss" in p.values)


def closed(world: World, kind: str) -> bool:
    """Whether the tool has all of the only run; read from the store, as `show` at each look uses a core."""
    store = open_store(str(world.store))
    [row] = rows(store)
    return any((one.kind, one.state) == (kind, "closed") for one in tracked.read(store, row.id))


def told(world: World, name: str) -> dict[str, dict[str, str]]:
    return {one["kind"]: one for one in world.run("show", name, "--json").json["trackers"]}


def test_unaware_script_is_shown_kept_and_pulled(world: World) -> None:
    world.write("hostler.yaml", "name: digits\ntags: [base]\ntrackers: [tensorboard]\n")
    assert world.run("run", "--name", "one", "train.py", "--lr", "0.5").code == 0
    eventually(lambda: closed(world, "tensorboard"))
    row = world.run("status", "--json").json[0]
    assert row["trackers"]["tensorboard"].endswith("/trackers/000001/tensorboard")
    assert row["trackers"]["tensorboard"] in world.run("show", "one").out
    assert world.run("pull", "one", "--trackers").code == 0
    for where in (world.folder / "one/trackers", Path(row["trackers"]["tensorboard"])):
        (run,) = foreign.past("tensorboard", str(where))
        assert curve(run) == [(1, 1.0), (2, 0.5), (3, 0.3333)]
    assert "tensorboard: " in world.run("logs", "one").out


def test_retried_attempt_leaves_its_tools_to_the_next(world: World) -> None:
    """Both would deliver at once, and a server that keeps all it gets would have each point twice."""
    world.write("hostler.yaml", "name: digits\ntrackers: [tensorboard]\n")
    world.write("flaky.py", FLAKY)
    done = world.run("run", "--name", "two", "flaky.py", "--mark", str(world.folder / "mark"), timeout=120)
    assert done.code == 0
    eventually(lambda: closed(world, "tensorboard"))
    assert told(world, "two")["tensorboard"]["state"] == "closed"
    records = sorted(world.store.glob("runs/*/trackers/*/tensorboard.json"))
    states = [json.loads(path.read_text())["state"] for path in records]
    assert states.count("closed") == 1 and states[-1] == "closed"
    (run,) = foreign.past("tensorboard", str(world.store / "runs"))
    assert curve(run) == [(1, 0.5)]


def test_past_runs_are_exported_and_again_nothing_is_doubled(world: World) -> None:
    world.write(
        "grid.yaml", "name: grid\ncommand: python train.py\nparameters:\n  lr: [0.1, 0.2]\n  nap: 0.0\n"
    )
    assert world.run("sweep", "-y", "--wait", "grid.yaml", timeout=120).code == 0
    for _ in range(2):
        done = world.run("export", "grid", "--to", "tensorboard", "--with", "dir=boards", "--json")
        assert done.code == 0 and [one["points"] >= 3 for one in done.json] == [True, True]
        runs = sorted(foreign.past("tensorboard", str(world.folder / "boards")), key=lambda run: run.name)
        assert [curve(run) for run in runs] == [[(1, 1.0), (2, 0.5), (3, 0.3333)]] * 2
    assert [run.name for run in runs] == [f"grid/{one['run']}" for one in done.json]
    one = world.run("export", "grid/1", "--to", "tensorboard", "--with", "dir=single", "--json").json
    assert [row["name"] for row in one] == ["grid/1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "tensorboard", "--with", "dri=x"], "tensorboard has no option 'dri' (did you mean 'dir'?)"),
        (["--to", "mlflow"], "mlflow: no uri is given and MLFLOW_TRACKING_URI is not set"),
        (["--to", "mlflow", "--with", "uri=http://127.0.0.1:9"], "http://127.0.0.1:9/ does not answer"),
        (["--to", "wandb", "--with", "mode=online"], "http://127.0.0.1:9/ does not answer"),
        (["--to", "comet", "--with", "mode=online"], "http://127.0.0.1:9/ does not answer"),
        (["--to", "wandb", "--with", "api_key=x"], "keys come from the environment"),
    ],
)
def test_an_export_that_cannot_be_says_why(
    filled: World, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {"WANDB_BASE_URL": "http://127.0.0.1:9", "COMET_URL_OVERRIDE": "http://127.0.0.1:9/clientlib/"}
    for name, value in {**gone, "WANDB_API_KEY": "0" * 40, "COMET_API_KEY": "x"}.items():
        monkeypatch.setitem(filled.env, name, value)
    done = filled.run("export", "one", *words)
    assert done.code != 0 and said in done.err and "Traceback" not in done.err
    assert len(done.err.splitlines()) == 2  # what is wrong, and what to do


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("filled"))
    assert made.run("run", "--name", "one", "train.py").code == 0
    yield made
    made.close()


def test_killed_script_by_hand_continues_in_its_tool(world: World) -> None:
    world.write("hand.py", BY_HAND)
    boards = world.folder / "boards"
    command = [sys.executable, "hand.py", str(boards)]
    process = _start(world, command)
    assert process.stdout is not None and process.stdout.readline() == "twenty\n"
    eventually(lambda: (20, 0.0476) in _shown(boards), 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    world.write("go", "")
    last = _start(world, command)
    assert last.communicate(timeout=120) and last.returncode == 0
    assert _shown(boards) == ALL
    (row,) = world.run("status", "--json").json
    assert row["state"] == "done" and row["attempt"] == 2
    assert not world.processes(holding="trackers.feeder")


def _start(world: World, command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=world.folder, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _shown(boards: Path) -> list[tuple[int, float]]:
    runs = list(foreign.past("tensorboard", str(boards))) if boards.is_dir() else []
    return curve(runs[0]) if runs else []


def test_a_script_under_a_worker_may_ask_for_tools_itself(world: World) -> None:
    world.write("hand.py", BY_HAND)
    world.write("go", "")
    boards = world.folder / "boards"
    assert world.run("run", "--name", "one", "hand.py", str(boards), timeout=120).code == 0
    eventually(lambda: closed(world, "tensorboard"))
    assert _shown(boards) == ALL


def test_undelivered_points_of_a_killed_worker_are_reported_with_advice(filled: World) -> None:
    (row,) = filled.run("status", "--json").json
    tracked.write(open_store(str(filled.store)), row["id"], tracked.Tracked("comet", "x", 1, "open"))
    said = filled.run("show", "one").out
    assert "not all of it was delivered; hostler export one --to comet" in said


def test_runs_of_another_tool_are_a_frame_beside_our_own(filled: World, tmp_path: Path) -> None:
    boards = tmp_path / "boards"
    assert filled.run("export", "one", "--to", "tensorboard", "--with", f"dir={boards}").code == 0
    frame = hostler.frame([str(filled.store), f"tensorboard:{boards}"])
    assert list(frame["loss"].round(4)) == [0.3333, 0.3333] and list(frame["state"]) == ["done", ""]
    assert [list(cell.round(4)) for cell in frame["loss.curve"]] == [[1.0, 0.5, 0.3333]] * 2
    assert len(hostler.frame([str(filled.store), f"tensorboard:{boards}"], state="done")) == 1
    long = hostler.curves(f"tensorboard:{boards}", metric="loss")
    assert list(long["step"]) == [1, 2, 3] and set(long["metric"]) == {"loss"}
    table = filled.run("df", "--store", f"tensorboard:{boards}", "--curves")
    assert table.code == 0 and "[1, 2, 3]" in table.out
    gone = filled.run("df", "--store", "wandb:nowhere")
    assert gone.code != 0 and "folder nowhere does not exist" in gone.err


def test_what_cannot_be_shown_is_said_before_anything_is_submitted(world: World) -> None:
    world.write("hostler.yaml", "trackers: [mlflow]\n")
    world.write("grid.yaml", "name: grid\ncommand: python train.py\nparameters: {lr: [1]}\n")
    for words in (["plan", "grid.yaml"], ["run", "train.py"], ["sweep", "-y", "grid.yaml"]):
        refused = world.run(*words)
        assert refused.code != 0 and "mlflow has no uri" in refused.err, words
    assert not (world.store / "sweeps").exists()


def test_key_of_a_tool_is_in_no_object_of_store(world: World) -> None:
    world.write(
        "hostler.yaml",
        "name: d\nsecrets: [WANDB_API_KEY]\ntrackers: {wandb: {mode: offline}}\n",
    )
    secret = "5ecre7" * 7
    assert world.run("run", "--name", "one", "train.py", WANDB_API_KEY=secret).code == 0
    eventually(lambda: closed(world, "wandb"), 120)
    files = [path for path in world.store.rglob("*") if path.is_file()]
    assert files and not any(secret.encode() in path.read_bytes() for path in files)
    (run,) = foreign.past("wandb", str(world.store))
    assert (run.id, json.dumps(run.params)) == (told(world, "one")["wandb"]["id"], "{}")
