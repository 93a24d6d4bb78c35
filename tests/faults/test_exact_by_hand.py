"""A NumPy training by hand, killed at random moments, ends equal to the bit: weights, metrics, patience.

Checkpoints are written all the time, so that many of the kills fall into one.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.emulators.gcs import GcsEmulator
from hostler.records.checkpoint import checkpoints
from script_world import Done, Scripts, line_of, until

TRAIN = """
import os, random, sys, time
import numpy as np
import hostler

class Model:
    def __init__(self):
        self.w, self.v = np.zeros(64), np.zeros(64)
    def state_dict(self): return {"w": self.w, "v": self.v}
    def load_state_dict(self, state): self.w, self.v = state["w"], state["v"]

class Patience:
    def __init__(self): self.best, self.waited = float("inf"), 0
    def state_dict(self): return {"best": self.best, "waited": self.waited}
    def load_state_dict(self, state): self.best, self.waited = state["best"], state["waited"]
    def stop(self, value):
        self.best, self.waited = (value, 0) if value < self.best else (self.best, self.waited + 1)
        return self.waited >= 8

random.seed(1)
np.random.seed(2)
draw = np.random.default_rng(3)
data = np.random.default_rng(4).normal(size=(200, 64))
target = data @ np.random.default_rng(5).normal(size=64)
model, patience = Model(), Patience()
with hostler.start({"lr": 0.005}, save_every=0.01) as run:
    run.track(model=model, patience=patience, draw=draw)
    print("begins", flush=True)
    for epoch in run.epochs(25):
        order = draw.permutation(200)  # what an epoch draws before its steps is the same when it is resumed
        flip = np.random.random() > 0.5
        for step in run.steps(20):
            rows = np.append(order[10 * step : 10 * step + 10], draw.choice(200, size=6))
            drop = np.random.random(64) > 0.1
            noise = random.gauss(0, 0.01)
            x = data[rows] * drop * (-1 if flip else 1) + noise
            error = x @ model.w - target[rows]
            model.v = 0.9 * model.v - run.params.lr * (x.T @ error) / 16
            model.w = model.w + model.v
            run.log(loss=float((error ** 2).mean()), noise=noise)
            time.sleep(float(os.environ.get("PAUSE", "0.015")))
        loss = float(((data @ model.w - target) ** 2).mean())
        run.log({"val/loss": loss, "patience": patience.waited})
        if patience.stop(loss):
            break
    run.finish(weights=model.w.tobytes().hex(), best=patience.best, waited=patience.waited)
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, object]:
    """What an undisturbed run ends with."""
    scripts = Scripts(tmp_path_factory.mktemp("whole"))
    scripts.write(TRAIN)
    done = scripts.run(PAUSE="0")
    assert done.code == 0, done.err
    return outcome(scripts)


def outcome(scripts: Scripts) -> tuple[object, object]:
    row = scripts.row()
    end = scripts.state(row).end
    assert end is not None and row.state == "done"
    curves = {name: scripts.curve(row, name) for name in ("loss", "noise", "val/loss", "patience")}
    assert len(curves["loss"]) >= 200
    return end["result"], curves


def finish(
    scripts: Scripts, kills: int, rng: random.Random, before: Callable[[int], None] = lambda n: None
) -> int:
    """Start it again and again, killed at random moments; how often it was killed."""
    killed = 0
    while True:
        before(killed)
        with scripts.running() as process:
            line_of(process, "begins")
            if killed < kills:
                time.sleep(rng.uniform(0, 0.25))
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
            _, err = process.communicate(timeout=120)
        if process.returncode == 0 or scripts.row().state == "done":  # killed after its end was told
            return killed
        assert process.returncode == -signal.SIGKILL, err


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_numpy_loop_killed_at_random_moments_is_bit_exact(
    tmp_path: Path, whole: tuple[object, object], kills: int
) -> None:
    scripts = Scripts(tmp_path)
    scripts.write(TRAIN)
    assert finish(scripts, kills, random.Random(7)) == kills
    assert scripts.row().attempt == kills + 1
    assert outcome(scripts) == whole


def test_on_s3_it_ends_equal_to_the_bit(
    tmp_path: Path, whole: tuple[object, object], seaweed_store_url: str
) -> None:
    scripts = Scripts(tmp_path, store=seaweed_store_url)
    scripts.write(TRAIN)
    finish(scripts, 3, random.Random(8))
    assert outcome(scripts) == whole


def test_on_the_gcs_emulator_it_ends_equal_to_the_bit(
    tmp_path: Path, whole: tuple[object, object], gcs: GcsEmulator
) -> None:
    scripts = Scripts(tmp_path, store="gs://hostler-test/exact")
    scripts.write(TRAIN)
    finish(scripts, 3, random.Random(9))
    assert outcome(scripts) == whole


def test_run_moved_between_machines_is_bit_exact(tmp_path: Path, whole: tuple[object, object]) -> None:
    scripts = Scripts(tmp_path, store=str(tmp_path / "store"))
    scripts.write(TRAIN)

    def move(n: int) -> None:
        scripts.cache, scripts.host = f"cache-{n}", f"host-{n}"

    assert finish(scripts, 3, random.Random(10), move) >= 2
    row = scripts.row()
    assert row.host == f"host-{row.attempt - 1}"
    assert outcome(scripts) == whole


def test_sigterm_within_an_epoch_repeats_no_step_and_is_exact(
    tmp_path: Path, whole: tuple[object, object]
) -> None:
    scripts = Scripts(tmp_path)
    scripts.write(TRAIN)
    with scripts.running(PAUSE="0.01") as process:
        line_of(process, "begins")
        time.sleep(0.6)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - begun < 10
    assert process.returncode == 75, err
    [left] = [line for line in err.splitlines() if "saved at step" in line]
    done = scripts.run(PAUSE="0")
    assert done.code == 0
    assert f"goes on from step {left.split('saved at step ')[1].split(',')[0]}" in done.err
    assert outcome(scripts) == whole


def test_damaged_newest_checkpoint_is_passed_over_loudly(
    tmp_path: Path, whole: tuple[object, object]
) -> None:
    scripts = Scripts(tmp_path, store=str(tmp_path / "store"))
    scripts.write(TRAIN)
    with scripts.running(PAUSE="0.02") as process:
        line_of(process, "begins")
        until(lambda: len(checkpoints.committed(scripts.opened(), scripts.row().id)) == 2)
        scripts.kill(process)
    scripts.cache, scripts.host = "other", "other"  # what the first machine still has is not there
    newest = checkpoints.committed(scripts.opened(), scripts.row().id)[0]
    folder = tmp_path / "store" / "runs" / scripts.row().id / "checkpoints"
    [place] = [p for p in folder.iterdir() if p.name == f"{newest.attempt:06d}-{newest.step:012d}"]
    victim = max((place / "files").iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    done: Done = scripts.run(PAUSE="0")
    assert done.code == 0, done.err
    assert "is passed over" in done.err and "the one before it is used" in done.err
    assert outcome(scripts) == whole
