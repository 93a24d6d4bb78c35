"""Callbacks of real libraries, saving more often than files rest, killed at a random moment.

They go on from the newest complete checkpoint, under a worker and by hand.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.records.run.log import RunKey
from hostler.records.series.logs import LogReader
from script_world import Scripts, line_of
from worker_world import World, until

TRANSFORMERS = """
import os, time
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
import hostler
from hostler.callbacks.transformers import HostlerCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        out = self.body(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}

class Slow(TrainerCallback):
    def on_step_end(self, *_, **__):
        time.sleep(0.05)

data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
with hostler.start({"lr": 0.01}) as run:
    callback = HostlerCallback(run)
    newest = int(callback.checkpoint.rpartition("-")[2]) if callback.checkpoint else 0
    print("folder", run.checkpoint_dir, flush=True)
    print("begins", newest, flush=True)
    args = TrainingArguments(
        output_dir=callback.output_dir, max_steps=newest + 2 if newest else 10000, save_strategy="steps",
        per_device_train_batch_size=8, save_steps=5, save_total_limit=2, report_to=[], use_cpu=True,
        disable_tqdm=True, logging_strategy="no",
    )
    trainer = Trainer(model=Model(), args=args, train_dataset=data, callbacks=[callback, Slow()])
    trainer.train(resume_from_checkpoint=callback.checkpoint)
"""

LIGHTNING = """
import time, warnings
warnings.simplefilter("ignore")
import torch
import lightning
import hostler
from hostler.callbacks.lightning import HostlerCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        time.sleep(0.05)
        return self.body(batch[0]).pow(2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 4)), batch_size=8)
with hostler.start({"lr": 0.05}) as run:
    callback = HostlerCallback(run)
    newest = 0
    if callback.checkpoint:
        newest = torch.load(callback.checkpoint, weights_only=False)["global_step"]
    print("folder", run.checkpoint_dir, flush=True)
    print("begins", newest, flush=True)
    trainer = lightning.Trainer(
        max_steps=newest + 2 if newest else 10000, max_epochs=-1, accelerator="cpu", logger=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
    )
    trainer.fit(Model(), data, ckpt_path=callback.checkpoint)
"""


def newest_of_transformers(folder: Path) -> int:
    marks = (folder / "trainer").glob("checkpoint-*/hostler-whole")
    return max((int(mark.parent.name.rpartition("-")[2]) for mark in marks), default=0)


def newest_of_lightning(folder: Path) -> int:
    import torch

    path = folder / "lightning.ckpt"
    return int(torch.load(path, weights_only=False)["global_step"]) if path.exists() else 0


ALL: dict[str, tuple[str, Callable[[Path], int]]] = {
    "transformers": (TRANSFORMERS, newest_of_transformers),
    "lightning": (LIGHTNING, newest_of_lightning),
}


def mostly(name: str) -> list[Any]:
    """This one, and the others in the long dose: each way and each library has its turn in the short one."""
    return [one if one == name else pytest.param(one, marks=pytest.mark.soak) for one in ALL]


def kill(pid: int, folder: Path, newest: Callable[[Path], int], rng: random.Random) -> int:
    """At a random moment once there are some checkpoints; the step of the newest that was complete."""
    until(lambda: newest(folder) >= 10)
    time.sleep(rng.uniform(0.0, 1.5))
    os.kill(pid, signal.SIGSTOP)
    step = newest(folder)
    os.kill(pid, signal.SIGKILL)
    return step


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", mostly("transformers"))
def test_callback_killed_under_a_worker_resumes_its_newest_checkpoint(name: str, tmp_path: Path) -> None:
    script, newest = ALL[name]
    world = World(tmp_path / "world")
    world.quick(settle=2.0)
    job = world.submit(script, env={"OMP_NUM_THREADS": "1"})
    key: RunKey = world.key(job)

    def lines(word: str) -> list[str]:
        text = b"".join(piece.data for piece in LogReader(world.store, key.run).read()).decode()
        return [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(f"{word} ")]

    with world.working():
        until(lambda: lines("begins"), 200)
        folder = Path(lines("folder")[0])
        [pid] = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/environ")
            if _is_script(path, folder.parent)
        ][-1:]
        step = kill(pid, folder, newest, random.Random(name))
        until(lambda: world.state(job).ended, 200)
    assert world.state(job).state == "done", world.log(job)
    assert [int(line) for line in lines("begins")] == [0, step], world.log(job)


def _is_script(environ: Path, folder: Path) -> bool:
    """Whether a process is the run's own, not a supervisor of it."""
    try:
        own = f"HOSTLER_DIR={folder}\0".encode() in environ.read_bytes()
        return own and b"train.py" in (environ.parent / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", mostly("lightning"))
def test_callback_killed_by_hand_goes_on_from_its_newest_checkpoint(name: str, tmp_path: Path) -> None:
    script, newest = ALL[name]
    scripts = Scripts(tmp_path, env={"OMP_NUM_THREADS": "1"})
    scripts.write(script)
    with scripts.running() as process:
        folder = Path(line_of(process, "folder ").split(" ", 1)[1].strip())
        step = kill(process.pid, folder, newest, random.Random(f"{name} by hand"))
        process.wait()
    done = scripts.run()
    assert done.code == 0, done.err
    assert f"begins {step}\n" in done.out, (step, done.out, done.err)
