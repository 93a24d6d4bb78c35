"""A folder of experiment-starter's, as it is: its job file, its train.py, its results folder."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import hostler
from cli_world import World

JOB = """\
job_details:
  name: linear
  output_dir: results
parameters:
  batch_size: [8, 32]
  base_lr: '[float(x) for x in 10.0 ** np.arange(-6, -4)]'
  epochs: [3]
"""
# Reads its config as YAML by PyYAML, writes what the trainer of that time wrote.
TRAIN = """\
import csv, json, os, sys, time, yaml
config = yaml.safe_load(open(sys.argv[1]))
assert type(config["base_lr"]) is float, config
os.makedirs(config["output_dir"], exist_ok=True)
yaml.dump({**config, "host_name": "here"}, open(os.path.join(config["output_dir"], "config.yaml"), "w"))
rows = []
for epoch in range(config["epochs"]):
    rows.append({"train/loss": 1 / (epoch + 1), "test/accuracy": epoch * config["base_lr"]})
    print(json.dumps({"step": epoch, **rows[-1]}), flush=True)
    while os.path.exists(HOLD) and epoch == 1:
        time.sleep(0.02)
with open(os.path.join(config["output_dir"], "stats.csv"), "w") as file:
    writer = csv.DictWriter(file, ["own", *rows[0]])
    writer.writeheader()
    writer.writerows({"own": 1, **row} for row in rows)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.write("job.yaml", JOB)
    world.write("train.py", f"HOLD = {str(tmp_path / 'hold')!r}\n{TRAIN}")
    yield world
    world.close()


def test_job_file_runs_the_folders_own_train_py(world: World) -> None:
    plan = world.run("plan", "job.yaml")
    assert "linear: 4 runs (grid)" in plan.out and "python train.py" in plan.out
    answer = world.run("sweep", "-y", "--wait", "job.yaml", timeout=120)
    assert answer.code == 0, answer.err + world.run("errors").out
    frame = hostler.frame(str(world.store))
    assert sorted(set(frame["base_lr"])) == [1e-6, 1e-5] and set(frame["state"]) == {"done"}
    (folder,) = (world.folder / "results").iterdir()
    assert folder.name == f"{time.strftime('%Y-%m-%d')}-linear"
    runs = sorted(place.name for place in folder.iterdir() if place.is_dir())
    assert [name.partition("-")[0] for name in runs] == ["000", "001", "002", "003"]
    assert runs[1] == "001-batch_size=8+base_lr=1e-05"
    for run in runs:
        files = sorted(place.name for place in (folder / run).iterdir())
        assert files == ["config.yaml", "done", "log.txt", "stats.csv"]
    config = yaml.safe_load((folder / runs[1] / "config.yaml").read_text())
    assert (config["base_lr"], config["host_name"]) == (1e-5, "here")
    assert (folder / runs[1] / "stats.csv").read_text().startswith("own,train/loss")


def test_followed_folder_grows_while_runs_train(world: World, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    assert world.run("sweep", "-y", "job.yaml").code == 0
    follower = subprocess.Popen(
        [sys.executable, "-m", "hostler", "pull", "linear", "--follow", "--to", "old results"],
        cwd=world.folder,
        env=world.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        folder = world.folder / "old results" / f"{time.strftime('%Y-%m-%d')}-linear"
        first = folder / "000-batch_size=8+base_lr=1e-06"
        until(lambda: len(stats(first)) == 2)
        assert yaml.safe_load((first / "config.yaml").read_text())["batch_size"] == 8
        assert "train/loss" in (first / "log.txt").read_text() and not (first / "done").exists()
        hold.unlink()
        until(lambda: len(list(folder.glob("*/done"))) == 4)
        assert follower.wait(60) == 0
        assert str(folder.relative_to(world.folder)) in (follower.stdout.read() if follower.stdout else "")
        assert len(stats(first)) == 3
    finally:
        hold.unlink(missing_ok=True)
        follower.kill()
        follower.wait()


def stats(place: Path) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader((place / "stats.csv").open()))
    except FileNotFoundError:
        return []


def until(condition, limit: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
