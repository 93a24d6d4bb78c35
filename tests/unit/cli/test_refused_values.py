"""Values that a script's parser would refuse, at verbs that submit: one line, nothing is submitted."""

from __future__ import annotations

import pytest

from acting_world import World, world

__all__ = ["world"]

SCRIPT = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--amp", action="store_true")
p.add_argument("--pair", nargs=2, type=float)
p.parse_args()
"""
SAID = "hostler: amp: 1, but train.py:4 declares --amp as store_true\n  → say true or false"


@pytest.mark.parametrize("words", [["plan", "grid.yaml"], ["sweep", "-y", "grid.yaml"], ["run", "amp=1"]])
def test_number_for_a_flag_is_refused_before_submission(world: World, words: list[str]) -> None:
    world.write("train.py", SCRIPT)
    world.write("hostler.yaml", "command: python train.py\n")
    world.write("grid.yaml", "name: grid\nparameters:\n  amp: [1, 0]\n  pair: {value: [1, 2]}\n")
    done = world.cli(*words)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (2, "", SAID)
    assert world.sweeps() == []


def test_near_miss_under_style_keys_is_refused_by_plan(world: World) -> None:
    world.write("train.py", SCRIPT)
    text = "command: python train.py\nstyle: {keys: {pare: {lists: spaces}}}\n"
    world.write("grid.yaml", text + "parameters:\n  pair: {value: [1, 2]}\n")
    done = world.cli("plan", "grid.yaml")
    said = "hostler: style.keys: no parameter or option is 'pare'\n  → did you mean 'pair'?"
    assert (done.returncode, done.stderr.strip()) == (2, said)
