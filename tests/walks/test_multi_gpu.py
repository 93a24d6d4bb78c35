"""`multi_gpu: true`: a process for each visible device, by hand and in a sweep, with two ranks' weights.

Devices are two processes on the CPU here, by HOSTLER_DEVICES.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cli_world import World, eventually
from hostler.records.rows import rows
from hostler.store import open_store
from ranked_reference import CONFIG, reference
from small_trainings import same

# The same weights as `linear`; a process that it names is killed once something was saved.
NET = """\
import os, signal, time
from pathlib import Path

import torch

DONE = [0]


class Net(torch.nn.Sequential):
    def __init__(self, config, data):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(6, 3))

    def forward(self, x):
        DONE[0] += self.training
        rank, step, whom = os.environ.get("KILL", "-1:0:self").split(":")
        mark = Path(os.environ["MARK"])
        if [os.environ.get("RANK"), str(DONE[0])] == [rank, step] and not mark.exists():
            while not any(Path(os.environ["AWAITED"]).rglob("COMMIT*")):
                time.sleep(0.02)  # checkpoints are written beside the training
            mark.touch()
            os.kill(os.getppid() if whom == "parent" else os.getpid(), signal.SIGKILL)
        return super().forward(x)
"""
TWO = {"HOSTLER_DEVICES": "2", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    torch.set_num_threads(1)
    world = World(tmp_path)
    world.write("my.py", NET)
    kept = {**CONFIG, "model": "my.py:Net", "output_dir": str(tmp_path / "out"), "multi_gpu": "true"}
    del kept["device"]
    world.write("config.yaml", "".join(f"{name}: {value}\n" for name, value in kept.items()))
    variables = {**TWO, "AWAITED": str(world.store), "MARK": str(tmp_path / "mark")}
    written = "".join(f"  {name}: '{value}'\n" for name, value in variables.items())
    command = "python -m hostler train config.yaml"
    world.write("hostler.yaml", f"name: p\ncommand: {command}\nenv:\n{written}")
    world.env.update(variables)
    yield world
    world.close()


def out(world: World) -> Path:
    return world.folder.parent / "out"


@pytest.mark.timeout(400)
def test_training_on_two_devices_killed_has_exact_weights(world: World) -> None:
    first = world.run("train", "config.yaml", timeout=200, KILL="0:9:parent")
    assert "multi_gpu: 2 devices are visible: a process trains on each" in first.err
    assert first.code == -9 and (world.folder.parent / "mark").exists(), first.err
    eventually(lambda: world.processes() == [])
    second = world.run("train", "config.yaml", timeout=200)
    assert second.code == 0 and "goes on from step" in second.err, second.err
    assert same(load_file(out(world) / "model.safetensors"), reference(2))
    eventually(lambda: world.processes() == [])
    (row,) = rows(open_store(str(world.store)))
    assert row.state == "done" and row.attempt > 1
    for lines in (one.out.splitlines() for one in (first, second)):
        assert len(lines) == len(set(lines)), lines  # of rank 0 alone
    assert len((out(world) / "stats.csv").read_text().splitlines()) == 4
    assert "2 processes train together" in (out(world) / "training.log").read_text()


@pytest.mark.timeout(400)
def test_sweep_on_two_devices_loses_a_rank_and_is_exact(world: World) -> None:
    world.write("sweep.yaml", "parameters: {base_lr: [0.1]}\n")
    world.write("hostler.yaml", (world.folder / "hostler.yaml").read_text() + "  KILL: '1:9:self'\n")
    answer = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=300)
    assert answer.code == 0, answer.err + world.run("errors").out
    assert (world.folder.parent / "mark").exists()
    (row,) = rows(open_store(str(world.store)))
    assert row.state == "done" and row.attempt > 1
    assert same(load_file(out(world) / "model.safetensors"), reference(2))
    said = world.run("logs", row.name).out
    assert said.count("a process trains on each") == 2
    assert said.count("train/loss") in (3, 4), said  # of rank 0 alone; the first epoch perhaps twice


@pytest.mark.timeout(200)
def test_one_device_or_none_is_said_and_trains(world: World) -> None:
    for number, said in (
        (1, "one GPU is visible: one process trains"),
        (0, "no GPU is visible: one process"),
    ):
        world.env["HOSTLER_DEVICES"] = str(number or "")
        answer = world.run("train", "config.yaml", f"seed_order={number}", "train_length=1", timeout=100)
        assert answer.code == 0 and answer.err.count("multi_gpu") == 1, answer.err
        assert f"multi_gpu: {said}" in answer.err
        assert said in (out(world) / "training.log").read_text()


@pytest.mark.timeout(400)
def test_gradients_sent_in_half_the_bytes_train_nearly_the_same(world: World) -> None:
    answer = world.run("train", "config.yaml", "grad_exchange=bf16", timeout=200)
    assert answer.code == 0, answer.err
    found, wanted = load_file(out(world) / "model.safetensors"), reference(2)
    far = max(float((found[name] - one).abs().max()) for name, one in wanted.items())
    assert 0 < far < 0.02


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_compiled_ranks_train_as_plain_ones(world: World) -> None:
    made = world.folder.parent / "made"
    words = ("train", "config.yaml", "model=linear", "compile=true")
    answer = world.run(*words, timeout=800, TORCHINDUCTOR_CACHE_DIR=str(made))
    assert answer.code == 0, answer.err
    assert "2 processes train together" in (out(world) / "training.log").read_text()
    assert list(made.rglob("*.so")), "something was compiled"
    found, wanted = load_file(out(world) / "model.safetensors"), reference(2)
    assert max(float((found[name] - one).abs().max()) for name, one in wanted.items()) < 1e-5
