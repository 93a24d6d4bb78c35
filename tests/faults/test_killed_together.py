"""Runs that share a process, when that or their worker is killed: each ends with the numbers of a group that
nobody disturbed, to the bit. A history of it is judged by tests/history/checker.py, which knows nothing of
hostler."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from killer import send
from recorder import Recorder, sweep_as_it_is

from cli_world import World, eventually
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import Row, rows
from hostler.store import Store, open_store

SLOW_NET = """\
import os, time

import torch

CALLS = [0]


class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.layer = torch.nn.Linear(64, data.n_classes)

    def forward(self, x):
        CALLS[0] += 1
        mark = os.path.join(os.environ["GO_ON"], os.environ["HOSTLER_SWEEP"])
        if CALLS[0] > 40 and not os.path.exists(mark):
            time.sleep(0.5)  # so that there is a middle of it, however slow the machine is
        return self.layer(x.flatten(1))
"""
CONFIG = """\
dataset: sklearn/digits
model: my.py:Net
device: cpu
batch_size: 200
train_length: 30
log_interval: 4
checkpoint_every: 16 steps
seed_model: 1
seed_training: 1
averaging: poly_8
"""
SWEEP = """\
name: {name}
metric: {{name: test/last/loss, goal: min}}
parameters:
  base_lr: {rates}
"""
RATES = (0.01, 0.02, 0.05)
# without code of a user's own: a process that has loaded some takes no second group
OURS = CONFIG.replace("my.py:Net", "linear/bias").replace("train_length: 30", "train_length: 120")
CURVES = ("train/step_loss", "train/loss", "test/last/loss", "test/last/accuracy", "test/av/loss")


def project(folder: Path) -> World:
    """Runs of the sweep `calm` need not wait; those of others do, until a file in `go-on` has their name."""
    world, go_on = World(folder), folder / "go-on"
    world.write("my.py", SLOW_NET)
    world.write("config.yaml", CONFIG)
    world.write("hostler.yaml", "name: p\ncommand: python -m hostler train config.yaml\n")
    go_on.mkdir()
    world.env |= {"OMP_NUM_THREADS": "1", "GO_ON": str(go_on)}
    (go_on / "calm").touch()
    return world


def submitted(world: World, name: str, rates: Sequence[float] = RATES, more: str = "") -> list[Row]:
    world.write(f"{name}.yaml", SWEEP.format(name=name, rates=list(rates)) + more)
    answer = world.run("sweep", "-y", "--no-start", f"{name}.yaml")
    assert answer.code == 0 and "trained together" in answer.err, answer.err
    return rows(opened(world), [name])


def opened(world: World) -> Store:
    return open_store(str(world.store))


def worked(world: World, name: str) -> list[Row]:
    answer = world.run("worker", str(world.store), "--sweep", name, timeout=1200)
    assert answer.code == 0, answer.err
    found = rows(opened(world), [name])
    assert {row.state for row in found} == {"done"}, answer.err + str([row.failure for row in found])
    return found


def in_the_middle(world: World, name: str, after: int = 0, patience: float = 400) -> int:
    """Wait until each of its runs has saved something in an attempt after this one; the attempt."""
    runs = [row.id for row in rows(opened(world), [name])]

    def newest(run: str) -> int:
        return max((place.attempt for place in checkpoints.committed(opened(world), run)), default=0)

    eventually(lambda: all(newest(run) > after for run in runs), patience)
    return max(map(newest, runs))


def violations(world: World, folder: Path, names: Sequence[str]) -> list[str]:
    """What the checker says of these sweeps, the last of which the readers are asked about."""
    url = str(world.store)
    history = Recorder(url, folder / "evidence", names[-1], world.env)
    calm = sweep_as_it_is(url, "calm", world.env, metrics=CURVES, judged=r"\.safetensors$")
    assert all(len(curve) > 1 and row["weights"] for row in calm for curve in row["curves"].values())
    runs = {name: [row.id for row in rows(opened(world), [name])] for name in ("calm", *names)}
    history.expect({run: row for own in runs.values() for run, row in zip(own, calm, strict=True)})
    return history.close(runs[names[-1]], Path(world.env["HOSTLER_CACHE"]), Path(world.env["TMPDIR"]))


@pytest.mark.timeout(900)
def test_group_with_a_killed_process_or_worker_ends_as_undisturbed(tmp_path: Path) -> None:
    world, go_on = project(tmp_path), tmp_path / "go-on"
    try:
        for name in ("calm", "process", "worker"):
            submitted(world, name)
        calm = worked(world, "calm")
        assert [row.together for row in calm] == [2] * 3

        begun = world.start("worker", str(world.store), "--sweep", "process")
        in_the_middle(world, "process")
        (trainer,) = world.processes(holding="hostler train")
        send(trainer, signal.SIGKILL)
        (go_on / "process").touch()
        assert begun.wait(240) == 0
        killed = worked(world, "process")
        assert [row.attempt for row in killed] == [2] * 3
        assert [row.together for row in killed] == [2] * 3

        begun = world.start("worker", str(world.store), "--sweep", "worker")
        in_the_middle(world, "worker")
        world.kill_workers()  # another one is started in its place
        (go_on / "worker").touch()
        assert begun.wait(240) == 0
        lost = worked(world, "worker")
        assert [row.attempt for row in lost] == [2] * 3 and not world.processes(holding="hostler train")
        assert [row.together for row in lost] == [2] * 3

        assert violations(world, tmp_path, ["process", "worker"]) == []
    finally:
        world.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_process_killed_in_its_second_group_ends_as_new_ones(tmp_path: Path) -> None:
    world = project(tmp_path)
    world.write("config.yaml", OURS.replace("log_interval: 4", "log_interval: 120"))
    try:
        for name in ("calm", "kept"):
            submitted(world, name, (*RATES, 0.1), "together: 2\n")
        world.env["HOSTLER_WARM"] = "0"  # each group has a new process
        calm = worked(world, "calm")
        del world.env["HOSTLER_WARM"]

        begun = world.start("worker", str(world.store), "--sweep", "kept")
        eventually(lambda: world.processes(holding="hostler train"), 400)
        (first,) = world.processes(holding="hostler train")
        in_the_middle(world, "kept", patience=1200)  # of the second group: that of the first is over
        (second,) = world.processes(holding="hostler train")
        send(second, signal.SIGKILL)
        assert begun.wait(600) == 0
        killed = worked(world, "kept")
        assert first == second
        assert sorted(row.attempt for row in killed) == [1, 1, 2, 2]
        assert [row.together for row in [*calm, *killed]] == [1] * 8
        assert violations(world, tmp_path, ["kept"]) == []
    finally:
        world.close()
