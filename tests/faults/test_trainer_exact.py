"""The trainer killed anywhere ends with the same weights, to the bit, as one never killed."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from cli_world import World
from hostler.attempt import nvml

COMMON = {
    "seed_model": 1, "seed_training": 2, "log_interval": 5, "log_interval_eval": 1, "momentum": 0.9,
    "averaging": "ema_0.9", "lr_schedule": "cosine", "device": "cpu", "checkpoint_every": "7 steps",
    "num_workers": 1,
}  # fmt: skip
TRAININGS = {
    "pictures": {
        "dataset": "synthetic/1x8x8_4_200", "model": "tiny/lenet", "augment": ["flip", "crop_1", "mixup"],
        "batch_size": 8, "base_lr": 0.02, "train_length": 5,
    },
    "dropout": {
        "dataset": "synthetic/3x8x8_4_160", "model": "tiny/wrn_10_1_0.3", "amp": "bf16", "batch_size": 16,
        "grad_accum_steps": 2, "base_lr": 0.05, "train_length": 6, "augment": ["cutmix"],
    },
    "adam": {
        "dataset": "synthetic/20_3_400", "model": "linear", "optim_alg": "adamw", "weight_decay": 0.1,
        "momentum": "0.9,0.99", "batch_size": 8, "base_lr": 0.01, "train_length": 4, "clip_grad_norm": 1.0,
    },
    "halved": {
        "dataset": "own.py:data", "model": "own.py:Small", "batch_size": 12, "eval_batch_size": 3,
        "base_lr": 0.05, "train_length": 4, "on_out_of_memory": "halve",
    },
    "fp16": {
        "dataset": "synthetic/20_3_400", "model": "linear", "amp": "fp16", "batch_size": 8, "base_lr": 0.05,
        "train_length": 3, "clip_grad_norm": 1.0, "lr_schedule": "step_2_0.1", "early_stopping_patience": 2,
        "best_checkpoint_metric": "loss", "save_best_checkpoint": True,
    },
    "a loader": {
        "dataset": "own.py:data", "model": "linear", "batch_size": 8, "base_lr": 0.05, "train_length": 4,
    },
}  # fmt: skip
OWN = """
import random
import torch
from hostler.train.data.split import Arrays, Data

class Noisy:
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, index):
        x = torch.full((6,), float(index % 3)) + torch.randn(6) * 0.1 + random.random()
        return x, index % 3

class Small(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.drop, self.norm = torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(6)
        self.last = torch.nn.Linear(6, 3)
    def forward(self, x):
        x = self.norm(self.drop(x))
        if len(x) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return self.last(x)

def data(config):
    test = torch.arange(9) % 3
    return Data({"train": Noisy(120), "test": Arrays(test[:, None].float().repeat(1, 6), test)}, (6,), 3)
"""
# Each attempt is a fork, so that torch is imported once; it kills itself before the step that is its last.
DRIVER = """
import importlib, json, os, signal, sys
import torch
import torchvision_here
torchvision_here.watch()
from hostler.train import experiment, step
from hostler.trainer import experiment_generator
torch.set_num_threads(1)
config, places = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for word, module in {"hf/": "transformers.models.gpt2.modeling_gpt2", "clip/": "open_clip"}.items():
    if config["model"].startswith(word):
        importlib.import_module(module)
go = step.Step.__call__
for number, place, last in [(n, p, last) for n, p in enumerate(places) for last in [*p["steps"], None]]:
    pid = os.fork()
    if pid == 0:
        os.chdir(place["folder"])
        os.environ["HOSTLER_CACHE"] = place["cache"]
        done = 0
        def call(self, *given):
            global done
            done += 1
            if done == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return go(self, *given)
        step.Step.__call__ = call
        for row in experiment_generator({**config, "output_dir": place["out"]}, name="it"):
            pass
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    end = "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    print("\\nend", number, end, flush=True)
"""


def train(worlds: list[World], config: dict[str, object], steps: list[list[int]]) -> list[list[str]]:
    """How each attempt ended, in each world."""
    for world in worlds:
        world.write("own.py", OWN)
    here = worlds[0]
    here.write("driver.py", DRIVER)
    places = [
        {
            "folder": str(w.folder),
            "cache": w.env["HOSTLER_CACHE"],
            "out": str(w.folder.parent / "out"),
            "steps": s,
        }
        for w, s in zip(worlds, steps, strict=True)
    ]
    path = os.pathsep.join([here.env["PYTHONPATH"], str(Path(__file__).parents[1])])
    short = tempfile.gettempdir()  # loader processes send batches by sockets there, whose names must be short
    said = here.folder / "said"  # no pipe: loader processes of a killed training may hold it for long
    with open(said, "w") as out:
        driver = subprocess.Popen(
            [sys.executable, "driver.py", json.dumps(config), json.dumps(places)],
            cwd=here.folder, env={**here.env, "TMPDIR": short, "PYTHONPATH": path},
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            assert driver.wait(7000) == 0, said.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    lines = [line.split() for line in said.read_text().splitlines() if line.startswith("end ")]
    ends = [[end for _, number, end in lines if number == str(n)] for n in range(len(worlds))]
    assert all(one[-1] == "0" for one in ends), said.read_text()
    return ends


@pytest.mark.parametrize("name", ["dropout", "halved"])
def test_weights_are_bit_exact_after_kills_at_random_steps(tmp_path: Path, name: str) -> None:
    exact(tmp_path, name, 4)


@pytest.mark.soak
@pytest.mark.parametrize("name", TRAININGS)
def test_weights_are_bit_exact_after_kills_at_twenty_random_steps(tmp_path: Path, name: str) -> None:
    exact(tmp_path, name, 20)


@pytest.mark.gpu
@pytest.mark.skipif(not nvml.gpus(), reason="there is no NVIDIA GPU on this machine")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", ["pictures", "dropout", "adam"])
def test_gpu_weights_are_bit_exact_after_kills_at_five_steps(
    tmp_path: Path, name: str, recorded: bool
) -> None:
    exact(tmp_path, name, 5, device="cuda", cuda_graph=recorded)


def exact(tmp_path: Path, name: str, kills: int, **more: object) -> None:
    config, chance = {**COMMON, **TRAININGS[name], **more}, random.Random(name)
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    steps = [chance.randint(2, 20) for _ in range(kills)]
    undisturbed, ends = train([World(calm), World(killed)], config, [[], steps])
    assert undisturbed == ["0"]
    assert ends.count("killed") == kills or ends.count("0") > 1
    assert ends.count("killed") >= min(kills, 3), ends
    assert (calm / "out/model.safetensors").read_bytes() == (killed / "out/model.safetensors").read_bytes()
    assert rows(calm / "out") == rows(killed / "out")
    assert resolved(calm / "out") == resolved(killed / "out")


def resolved(where: Path) -> list[str]:
    return [line for line in (where / "config.yaml").read_text().splitlines() if "output_dir" not in line]


def rows(where: Path) -> list[dict[str, str]]:
    with open(where / "stats.csv") as file:
        found = list(csv.DictReader(file))
    return [
        {k: v for k, v in row.items() if k.endswith(("loss", "accuracy", "examples", "rate"))}
        for row in found
    ]
