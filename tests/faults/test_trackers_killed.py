"""Runs in tracking tools while everything is killed or hangs: the run comes first, no point comes twice.

Where a tool has a server of its own, it is that server that shows the run."""

from __future__ import annotations

import glob
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from killer import SUPERVISOR, WORKER, Farm, farm, keys_of, often, outcome, send, until

import tracker_servers as servers
from hostler import proctable
from hostler.analysis import foreign
from hostler.records.run import tracked
from hostler.spec.job import Job
from hostler.spec.tracking import OPTIONS, Tracking
from hostler.trackers.mlflow import ID, client
from worker_world import World

STEPS = [*range(1, 31)]
TRAIN = """
import json, os, time
place = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "step")
begin = int(open(place).read()) if os.path.exists(place) else 0
for step in range(begin + 1, 31):
    print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    with open(place + ".new", "w") as file:
        file.write(str(step))
    os.replace(place + ".new", place)
    time.sleep(0.02)
    while step % 4 == 0 and not os.path.exists(os.path.join(os.environ["GO"], str(step))):
        time.sleep(0.05)
"""


def kept(kind: str, where: str) -> dict[str, servers.Curve]:
    """The curves that a tool has, by the ids of its runs."""
    found = [one for one in foreign.past(kind, where) if one.points]
    return {
        run.id: sorted((p.step, p.values["loss"]) for p in run.points if "loss" in p.values) for run in found
    }


def named(uri: str, runs: dict[str, servers.Curve]) -> dict[str, servers.Curve]:
    """The same by hostler's ids: MLflow chooses its own, and has ours in a tag."""
    return {client(uri).get_run(run).data.tags[ID]: curve for run, curve in runs.items()}


def fed(ground: Farm) -> set[Path]:
    """Attempts of which every tool says that it has got something."""
    found = glob.glob(
        f"{ground.cache}/runs/*/*/trackers/*/told.json"
    )  # which minds no folder that goes meanwhile
    said = {path: _sent(path) for path in map(Path, found)}
    folders = {path.parent.parent for path in said}
    return {
        one
        for one in folders
        if sum(n > 0 for path, n in said.items() if one in path.parents) == len(OPTIONS)
    }


def _sent(path: Path) -> int:
    try:
        return int(json.loads(path.read_text())["sent"])
    except FileNotFoundError:  # its worker tidied up
        return 0


def feeders(ground: Farm) -> list[int]:
    found = proctable.marked(str(ground.cache), "HOSTLER_CACHE")
    return [pid for pid in found if b"hostler.trackers.feeder" in _words(pid)]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.soak)])
def test_after_sigkill_every_tool_has_every_step_once(tmp_path: Path, kills: int) -> None:
    go, boards, projects = (tmp_path / name for name in ("go", "boards", "projects"))
    for folder in (go, boards, projects):
        folder.mkdir()
    gates = [*range(4, 4 * kills + 1, 4)]  # each attempt comes further than the one before
    for step in set(STEPS) - set(gates):
        (go / str(step)).touch()
    with (
        servers.mlflow(tmp_path) as uri,
        farm(str(tmp_path / "store"), tmp_path / "farm", {"GO": str(go)}, tracker=120) as ground,
    ):
        trackers = (
            Tracking("tensorboard", {"dir": str(boards)}),
            Tracking("wandb", {"mode": "offline"}),
            Tracking("mlflow", {"uri": uri}),
            Tracking("comet", {"mode": "offline"}),
            Tracking("trackio", {"dir": str(projects), "project": "killed"}),
        )
        (ground.code / "train.py").write_text(TRAIN)
        words = (sys.executable, "train.py")
        job = ground.submit(Job(name="job", command=words, trackers=trackers, warm=False, **often()))  # type: ignore[arg-type]
        (key,) = keys_of(job)
        seen = set[Path]()
        for gate in gates:
            ground.tend(1)
            until(lambda known=frozenset(seen): fed(ground) - known, 240, why=ground.said)  # type: ignore[misc]
            seen |= fed(ground)
            for pid in [*ground.processes(WORKER), *ground.processes(SUPERVISOR), *feeders(ground)]:
                send(pid, signal.SIGKILL)
            (go / str(gate)).touch()
        ground.finish(job, workers=1, seconds=240)
        truth = outcome(ground.store, key)
        assert truth.state.attempts > kills and [s for s, _ in truth.points["loss"]] == STEPS
        tracked.fetch(ground.store, key.run, tmp_path / "pulled")
        records = tracked.read(ground.store, key.run)
        assert {one.state for one in records} == {"closed"} and not feeders(ground)
        (its,) = {one.id for one in records}
        found = {
            "wandb": kept("wandb", str(tmp_path / "pulled/wandb")),
            "comet": kept("comet", str(tmp_path / "pulled/comet")),
            "mlflow": named(uri, kept("mlflow", uri)),
        }
    with servers.trackio(projects) as url:
        found["trackio"] = servers.trackio_shows(url, "killed")
    with servers.tensorboard(boards) as url:
        (curve,) = servers.tensorboard_shows(url).values()  # it knows folders, no ids
    for kind, curves in {**found, "tensorboard": {its: curve}}.items():
        assert list(curves) == [its], f"{kind}: every attempt goes on with the same run"
        assert [step for step, _ in curves[its]] == STEPS, kind
        assert all(abs(value - 1 / step) < 1e-6 for step, value in curves[its]), kind
    assert len(found) + 1 == len(OPTIONS)


def test_a_tool_that_never_answers_costs_the_run_one_line(world: World) -> None:
    world.quick(tracker=1.0)
    job = world.submit(
        'import json\nprint(json.dumps({"step": 1, "loss": 2.0}), flush=True)',
        trackers=(Tracking("wandb", {"mode": "online"}), Tracking("mlflow", {"uri": "http://127.0.0.1:9"})),
        env={"WANDB_API_KEY": "0" * 40, "WANDB_BASE_URL": "http://127.0.0.1:9"},
    )
    assert world.work() == 0
    assert world.state(job).state == "done" and world.curve(job, "loss") == [(1, 2.0)]
    lines = [line for line in world.log(job).splitlines() if line.startswith("[hostler]")]
    assert sorted(line.split()[1] for line in lines) == ["mlflow:", "wandb:"], lines
    assert all("the run goes on" in line for line in lines)
    assert {one.state for one in tracked.read(world.store, world.key(job).run)} == {"failed"}


def test_a_feeder_that_is_killed_costs_the_run_one_line(world: World) -> None:
    script = """
import json, os, time
print(json.dumps({"step": 1, "loss": 2.0}), flush=True)
while not os.path.exists(os.environ["MARKS"] + "/go"):
    time.sleep(0.05)
"""
    job = world.submit(script, trackers=(Tracking("tensorboard"),))
    run = world.key(job).run
    with world.working():
        found = list[int]()
        until(lambda: found.extend(_feeders_below(world.cache)) or found, 60)  # type: ignore[func-returns-value]
        os.kill(found[0], signal.SIGKILL)
        until(lambda: any(one.state == "failed" for one in tracked.read(world.store, run)), 60)
        world.mark("go").touch()
        until(lambda: world.state(job).ended, 60)
    assert world.state(job).state == "done"
    assert world.log(job).count("tensorboard: its process ended with exit code -9") == 1


def _feeders_below(folder: Path) -> list[int]:
    pids = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    words = {pid: b" ".join(_words(pid)) for pid in pids}
    return [pid for pid, said in words.items() if b"trackers.feeder" in said and str(folder).encode() in said]
