"""A grid of linear models, as experiment-starter's example has it, from a libsvm file into one data frame."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import hostler
from cli_world import World

# 6 batch sizes × (9 rates without momentum, and a tenth of them with it)
JOB = """\
job_details:
  name: linear-classifier-example
  output_dir: results
parameters:
  log_interval: [10]
  save_freq: [0]
  eval_batch_size: [10000]
  dataset: ['libsvm/a9a']
  data_splits_map: ['dict(train="train", traineval="train")']
  model: ['linear']
  model_head_init: ['zero']
  batch_size: {batches}
  LIST_OF_LRS:
    - base_lr: {rates}
      momentum: [0.0]
    - base_lr: {tenths}
      momentum: [0.9]
  weight_decay: [0.0]
  train_length: [3]
  train_length_unit: ['epoch']
  lr_schedule: ['constant']
  optim_alg: ['sgd']
  averaging: ['poly_8']
  num_workers: [1]
"""


def libsvm(path: Path, count: int, width: int = 123, held: int = 14) -> None:
    """Rows of zeros and ones, as many of them and as wide as a9a's."""
    chance = random.Random(3)
    weights = [chance.gauss(0, 1) for _ in range(width)]
    with open(path, "w") as file:
        for _ in range(count):
            columns = sorted(chance.sample(range(width), held))
            label = "+1" if sum(weights[c] for c in columns) + chance.gauss(0, 1) > 0 else "-1"
            file.write(f"{label} {' '.join(f'{c + 1}:1' for c in columns)}\n")


def grid(tmp_path: Path, examples: int, batches: list[int], rates: list[float], timeout: float) -> None:
    world = World(tmp_path)
    (world.folder / "data").mkdir()
    libsvm(world.folder / "data" / "a9a", examples)
    world.write("config.yaml", f"data_dir: {world.folder / 'data'}\ndata_download: false\ndevice: cpu\n")
    world.write(
        "hostler.yaml", "name: p\ncommand: python -m hostler train config.yaml\nenv: {OMP_NUM_THREADS: 1}\n"
    )
    tenths = [rate / 10 for rate in rates]
    world.write("job.yaml", JOB.format(batches=batches, rates=rates, tenths=tenths))
    try:
        answer = world.run("sweep", "-y", "--wait", "job.yaml", timeout=timeout)
        assert answer.code == 0, answer.err + world.run("errors").out
        assert f"trained together on one device: {2 * len(batches) * len(rates)} of" in answer.err
        frame = hostler.frame(str(world.store))
        shown = world.run("show", str(frame["name"][0])).out
    finally:
        world.close()
    count = 2 * len(batches) * len(rates)
    assert len(frame) == count and set(frame["state"]) == {"done"}
    assert len(frame.groupby(["batch_size", "base_lr", "momentum"])) == count
    assert frame["traineval/av/loss"].notna().all() and frame["train/learning_rate"].notna().all()
    assert set(frame["model"]) == {"linear"} and set(frame["averaging"]) == {"poly_8"}
    assert frame["seed_model"].nunique() == count and frame["seed_training"].notna().all()
    assert ["seed_model", str(frame["seed_model"][0])] in [line.split() for line in shown.splitlines()]
    assert frame.groupby("batch_size")["traineval/last/accuracy"].max().min() > 0.7


@pytest.fixture(autouse=True)
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))


@pytest.mark.timeout(280)
def test_a_grid_of_six_linear_models_becomes_one_frame(tmp_path: Path) -> None:
    grid(tmp_path, 1500, [32], [2.0**k for k in (-3, -1, 1)], 260)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_grid_of_108_linear_models_becomes_one_frame(tmp_path: Path) -> None:
    grid(tmp_path, 32_561, [8, 32, 128, 512, 2048, 8192], [2.0**k for k in range(-6, 3)], 3500)
