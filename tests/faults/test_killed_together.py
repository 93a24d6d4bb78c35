"""Runs that share a process, when that or their worker is killed: each ends with the numbers of a group that
nobody disturbed, to the bit."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cli_world import World, eventually
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import Row, rows
from hostler.records.series import metrics
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
  base_lr: [0.01, 0.02, 0.05]
"""
CURVES = ("train/step_loss", "train/loss", "test/last/loss", "test/last/accuracy", "test/av/loss")


def submitted(world: World, name: str) -> list[Row]:
    world.write(f"{name}.yaml", SWEEP.format(name=name))
    answer = world.run("sweep", "-y", "--no-start", f"{name}.yaml")
    assert answer.code == 0 and "trained together" in answer.err, answer.err
    return rows(opened(world), [name])


def opened(world: World) -> Store:
    return open_store(str(world.store))


def worked(world: World, name: str) -> list[Row]:
    answer = world.run("worker", str(world.store), "--sweep", name, timeout=240)
    assert answer.code == 0, answer.err
    found = rows(opened(world), [name])
    assert [row.state for row in found] == ["done"] * 3, answer.err + str([row.failure for row in found])
    return found


def curves(world: World, row: Row) -> dict[tuple[str, int], float]:
    points = metrics.read(opened(world), row.id, row.claim or _last(world, row))
    return {(name, p.step): p.values[name] for p in points for name in CURVES if name in p.values}


def _last(world: World, row: Row) -> int:
    from hostler.records.run import control

    return control.state_of(opened(world), row.key).attempt


def in_the_middle(world: World, name: str) -> None:
    """Wait until each of its runs has saved something."""
    found = rows(opened(world), [name])
    eventually(lambda: all(checkpoints.committed(opened(world), row.id) for row in found), 180)


@pytest.mark.timeout(900)
def test_group_with_a_killed_process_or_worker_ends_as_undisturbed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("my.py", SLOW_NET)
    world.write("config.yaml", CONFIG)
    world.write("hostler.yaml", "name: p\ncommand: python -m hostler train config.yaml\n")
    go_on = tmp_path / "go-on"
    go_on.mkdir()
    world.env |= {"OMP_NUM_THREADS": "1", "GO_ON": str(go_on)}
    (go_on / "calm").touch()
    try:
        for name in ("calm", "process", "worker"):
            submitted(world, name)
        calm = worked(world, "calm")
        assert [row.together for row in calm] == [2] * 3

        begun = world.start("worker", str(world.store), "--sweep", "process")
        in_the_middle(world, "process")
        (trainer,) = world.processes(holding="hostler train")
        os.kill(trainer, signal.SIGKILL)
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

        for one, other, another in zip(calm, killed, lost, strict=True):
            whole = curves(world, one)
            assert len(whole) > 50
            assert curves(world, other) == whole and curves(world, another) == whole
    finally:
        world.close()
