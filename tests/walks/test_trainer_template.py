"""`hostler init --template trainer`: a copy of the trainer that runs, is edited, and runs again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hostler
from cli_world import World, eventually
from hostler.records.rows import Row, rows
from hostler.store import open_store

FAST = {"OMP_NUM_THREADS": "1"}
SLOW = {"HOSTLER_TRACKER": "180"}  # a busy machine takes its time to import a tracking tool


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path)
    (world.folder / "train.py").unlink()
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))
    yield world
    world.close()


def edit(world: World, name: str, before: str, after: str) -> None:
    text = (world.folder / name).read_text()
    assert text.count(before) == 1
    world.write(name, text.replace(before, after))


@pytest.mark.timeout(280)
def test_template_runs_as_written_and_edited_with_old_runs_defaults(world: World) -> None:
    answer = world.run("init", "--template", "trainer", "-y", "--json")
    assert answer.code == 0, answer.err
    assert {"train.py", "my.py", "config.yaml", "trainer/experiment.py"} <= set(answer.json["written"])
    assert not [p for p in (world.folder / "trainer").rglob("*.py") if "hostler.train." in p.read_text()]

    first = world.run("run", "train_length=1", timeout=120, **FAST)
    assert first.code == 0 and "epoch 1: train/loss" in first.out, first.err
    wrong = world.run("run", "optim_alg=nope", timeout=120, **FAST)  # ends before it says a word
    assert wrong.code == 2 and "train.py: optim_alg: 'nope' is not one of" in wrong.out + wrong.err
    assert "Traceback" not in wrong.out + wrong.err

    edit(world, "trainer/config.py", "momentum: float | str = 0.9 ", "momentum: float | str = 0.5 ")
    edit(world, "train.py", 'print(f"epoch', 'print("edited", f"epoch')
    edit(world, "my.py", "torch.nn.ReLU()", "torch.nn.Tanh()")
    edit(world, "config.yaml", "# loss:", "loss:")
    edit(world, "config.yaml", "# optim_alg:", "optim_alg:")
    edit(world, "config.yaml", "# transform:", "transform:")
    second = world.run("run", "train_length=2", "base_lr=0.01", "num_workers=0", timeout=120, **FAST)
    assert second.code == 0 and "edited epoch 2: train/loss" in second.out, second.err

    frame = hostler.frame(str(world.store)).set_index("state")
    assert sorted(frame.index) == ["done", "done", "failed"]
    done = frame.loc["done"].set_index("train_length")
    assert dict(done["momentum"]) == {1: 0.9, 2: 0.5}
    assert dict(done["loss"]) == {1: "log", 2: "my.py:loss"}
    assert frame.loc["failed"]["momentum"] == 0.9  # from the project's ledger: it said nothing itself


CELLS = "{base_lr: [0.3, 0.1], averaging: [null, ema_0.9]}"
TWO = "{base_lr: [0.3, 0.1], averaging: [ema_0.9]}"
MEASURED = ["train/loss", "test/last/loss"]


def copied(world: World, model: str) -> None:
    assert world.run("init", "--template", "trainer", "-y").code == 0
    edit(world, "config.yaml", "model: my.py:Net ", f"model: {model} ")
    edit(world, "config.yaml", "train_length: 5 ", "train_length: 2 ")
    for name, seed in (("seed_model", 1), ("seed_training", 2), ("device", "cpu")):
        world.write("config.yaml", (world.folder / "config.yaml").read_text() + f"{name}: {seed}\n")


def swept(world: World, name: str, cells: str, *words: str) -> tuple[str, list[Row], Any]:
    """What a sweep of the cells says, its rows, and their losses by their parameters."""
    world.write(f"{name}.yaml", f"parameters: {cells}\n")
    answer = world.run("sweep", "-y", "--wait", *words, f"{name}.yaml", timeout=280, **FAST)
    assert answer.code == 0, answer.err + world.run("errors").out
    found = rows(open_store(str(world.store)), [name])
    assert {row.state for row in found} == {"done"}
    frame = hostler.frame(str(world.store), name).fillna({"averaging": "none"})
    return answer.err, found, frame.set_index(["base_lr", "averaging"]).sort_index()[MEASURED]


@pytest.mark.timeout(600)
def test_cells_of_the_copied_template_are_trained_together(world: World) -> None:
    copied(world, "linear")
    said, found, together = swept(world, "together", CELLS)
    assert "trained together on one device: 4 of 4 runs" in said
    assert [(row.together, row.attempt) for row in found] == [(3, 1)] * 4
    said, found, alone = swept(world, "alone", CELLS, "--one-by-one")
    assert "trained one by one" in said and [row.together for row in found] == [0] * 4
    assert (abs(together - alone) < 1e-5).all(axis=None) and together["train/loss"].nunique() == 2


@pytest.mark.timeout(600)
def test_changed_copy_that_cannot_share_a_process_says_why(world: World) -> None:
    copied(world, "my.py:Net")
    edit(world, "my.py", "torch.nn.ReLU(),", "torch.nn.AlphaDropout(0.2),")
    said, found, apart = swept(world, "dropout", TWO)
    assert "trained together on one device: 2 of 2 runs" in said  # only the model tells
    assert [row.together for row in found] == [0] * 2
    reason = "left to another process: cannot be trained together: the model drops in a way of its own"
    assert reason in world.run("logs", found[0].name).out
    edit(world, "trainer/step.py", "def rehearse(", "def rehearse(  # mine\n        ")
    said, found, changed = swept(world, "changed", TWO)
    assert "trained one by one: trainer/step.py differs from hostler's" in said
    assert [(row.together, row.attempt) for row in found] == [(0, 1)] * 2 and changed.equals(apart)


@pytest.mark.timeout(280)
def test_wandb_keys_of_the_copied_template_show_its_run(world: World) -> None:
    assert world.run("init", "--template", "trainer", "-y").code == 0
    words = ("wandb=true", "wandb_project_name=digits", "wandb_tags=[a]", "train_length=1")
    answer = world.run("run", "--name", "shown", *words, timeout=200, WANDB_MODE="offline", **SLOW, **FAST)
    assert answer.code == 0, answer.err
    # A tool delivers beside the run, which does not wait for it.
    eventually(lambda: world.run("pull", "shown", "--trackers", "--to", "pulled").code == 0)
    assert list((world.folder / "pulled" / "trackers").rglob("offline-run-*")), answer.err
