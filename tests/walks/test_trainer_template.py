"""`hostler init --template trainer`: a copy of the trainer that runs, is edited, and runs again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hostler
from cli_world import World

FAST = {"OMP_NUM_THREADS": "1"}


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
