"""A secret planted in a fleet of this machine is nowhere but in the environment of its worker and its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_world import World
from secret_world import NAMES, Hold, Planted, script, until


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write(
        "hostler.yaml", f"name: p\ncommand: python train.py\nretries: 0\nsecrets: [{', '.join(NAMES)}]\n"
    )
    return made


def test_run_that_prints_and_raises_its_secrets_leaves_none_anywhere(world: World, tmp_path: Path) -> None:
    planted, hold = Planted(), Hold(tmp_path)
    world.write("train.py", script(hold))
    plan = world.run("plan", **planted.values)
    started = world.run("run", "--detach", "--name", "one", **planted.values)
    assert started.code == 0, started.err
    until(hold.waits, lambda: world.run("show", "one").out)
    assert not planted.listed()
    hold.let_go()
    world.run("wait", "one")
    shown = [world.run(*words) for words in (("logs", "one"), ("show", "one"), ("show", "--json", "one"))]
    shown += [world.run("errors", "one"), world.run("status", "--json", "one"), plan, started]
    assert planted.arrived(shown[0].out), shown[0].out[-2000:]
    assert "failed" in shown[1].out and "*** and {" in shown[1].out, shown[1].out
    for answer in shown:
        assert not planted.is_in(answer.out + answer.err)
    world.run("down", "local")
    assert not planted.files(world.folder, tmp_path / "private")
