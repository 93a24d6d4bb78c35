"""Booleans and lists reach unmodified scripts of every parser, swept with real workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import parser_scripts as scripts
from cli_world import World

# One boolean and one list of each parser, as the keys are called in its script.
SWEPT = {
    "store_true": (scripts.ARGPARSE, "amp", "layers"),
    "store_false": (scripts.ARGPARSE, "cache", "tag"),
    "optional_action": (scripts.ARGPARSE, "ema", "layers"),
    "str2bool": (scripts.ARGPARSE, "use_bn", "tag"),
    "click_flag": (scripts.CLICK, "amp", "tags"),
    "click_pair": (scripts.CLICK, "ema", "pair"),
    "typer": (scripts.TYPER, "amp", "layers"),
    "absl_list": (scripts.ABSL, "amp", "names"),
    "absl_multi": (scripts.ABSL, "ema", "layers"),
    "fire": (scripts.FIRE, "amp", "layers"),
    "configurator": (scripts.GPT, "compile", "layers"),
}
HYDRA = """
import json, hydra
from omegaconf import OmegaConf
@hydra.main(version_base=None, config_path=".", config_name="config")
def main(config):
    print(json.dumps(OmegaConf.to_container(config)))
main()
"""
WITH_HYDRA = {"hydra_by_name": (HYDRA, "amp", "layers"), "hydra_seen": (HYDRA, "amp", "layers")}
HIDDEN = """
import importlib, json
argparse = importlib.import_module("argparse")
p = argparse.ArgumentParser()
for name in ("amp", "ema"):
    p.add_argument("--" + name, action="store_true")
p.add_argument("--" + "tag", action="append")
print(json.dumps(vars(p.parse_args())))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def swept(world: World, text: str) -> list[dict[str, Any]]:
    """Rows of the sweep after it is over, all done."""
    world.write("sweep.yaml", text)
    answer = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=240)
    assert answer.code == 0, answer.err + world.run("logs", "sweep").out
    rows: list[dict[str, Any]] = world.run("status", "sweep", "--json").json
    assert [row["state"] for row in rows] == ["done"] * len(rows)
    return rows


def printed(world: World, row: dict[str, Any]) -> dict[str, Any]:
    """The parameters as the script's last attempt saw them."""
    lines = [line for line in world.run("logs", row["id"]).out.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@pytest.fixture(scope="module")
def all_swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A sweep for each script, all taken by the same worker."""
    world = World(tmp_path_factory.mktemp("swept"))
    world.write("configurator.py", scripts.CONFIGURATOR)
    world.write("config.yaml", "amp: null\nlayers: []\n")
    for case, (script, boolean, many) in {**SWEPT, **WITH_HYDRA}.items():
        world.write("train.py", script)
        values = "[0.5, 1.5]" if many == "pair" else "[3, 4]"
        style = "style: hydra\n" if case == "hydra_by_name" else ""
        world.write(
            f"{case}.yaml",
            f"command: python train.py\n{style}"
            f"parameters:\n  {boolean}: [true, false]\n  {many}: {{value: {values}}}\n",
        )
        answer = world.run("sweep", "-y", "--no-start", f"{case}.yaml")
        assert answer.code == 0, answer.err
    assert world.run("up").code == 0
    yield world
    world.close()


def check(world: World, case: str, boolean: str, many: str) -> None:
    assert world.run("wait", case, timeout=240).code == 0, world.run("logs", case).out
    rows = world.run("status", case, "--json").json
    assert {row["params"][boolean] for row in rows} == {True, False}
    for row in rows:
        got = printed(world, row)
        assert got[boolean] is row["params"][boolean]
        assert [str(item) for item in got[many]] == [str(item) for item in row["params"][many]]


@pytest.mark.parametrize("case", SWEPT)
def test_an_unmodified_script_gets_true_false_and_lists(all_swept: World, case: str) -> None:
    _, boolean, many = SWEPT[case]
    check(all_swept, case, boolean, many)


@pytest.mark.parametrize("case", WITH_HYDRA)
def test_hydra_gets_true_false_and_lists(all_swept: World, case: str) -> None:
    check(all_swept, case, "amp", "layers")


def test_bash_getopts_gets_true_false_and_lists(world: World) -> None:
    world.write("train.sh", scripts.GETOPTS)
    rows = swept(
        world, "command: bash train.sh\nparameters:\n  v: [true, false]\n  l: {value: [3, 4]}\n  n: x\n"
    )
    assert [(printed(world, row)["v"], printed(world, row)["l"]) for row in rows] == [
        (True, "3 4"),
        (False, "3 4"),
    ]


def test_an_unreadable_parser_is_learned_from_its_usage_error(world: World) -> None:
    world.write("train.py", HIDDEN)
    text = (
        "command: python train.py\nretries: 0\nparallel: 1\nparameters:\n"
        "  amp: [true, false]\n  ema: [true, false]\n  tag: {value: [a, b]}\n"
    )
    rows = swept(world, text)
    for row in rows:
        assert printed(world, row) == row["params"]
    assert [row["attempt"] for row in rows] == [2, 1, 1, 1]  # the others begin with what was learned
    assert (
        "the script refused --amp true: it is tried again with --amp" in world.run("logs", rows[0]["id"]).out
    )


BOOLEANS = "  amp: [true, false]\n  ema: [true, false]\n"
LEARNED = {
    "click": (scripts.HIDDEN_CLICK, BOOLEANS + "  tag: {value: [a, b]}\n"),
    "typer": (scripts.HIDDEN_TYPER, BOOLEANS + "  tag: {value: [a, b]}\n"),
    "absl": (scripts.HIDDEN_ABSL, BOOLEANS),
    "fire": (scripts.HIDDEN_FIRE, "  lr: [0.5, 1.5]\n  layers: {value: [3, 4]}\n"),
}


@pytest.fixture(scope="module")
def all_learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A sweep for each script, all taken by the same worker."""
    world = World(tmp_path_factory.mktemp("learned"))
    for case, (script, parameters) in LEARNED.items():
        world.write("train.py", script)
        head = "command: python train.py\nretries: 0\nparallel: 1\nparameters:\n"
        world.write(f"{case}.yaml", head + parameters)
        answer = world.run("sweep", "-y", "--no-start", f"{case}.yaml")
        assert answer.code == 0, answer.err
    assert world.run("up").code == 0
    yield world
    world.close()


@pytest.mark.parametrize("case", LEARNED)
def test_usage_error_of_an_unreadable_parser_is_learned_from(all_learned: World, case: str) -> None:
    log = all_learned.run("wait", case, timeout=240).err + all_learned.run("logs", case).out
    rows = all_learned.run("status", case, "--json").json
    for row in rows:
        assert row["state"] == "done" and printed(all_learned, row) == row["params"], log
    assert [row["attempt"] for row in rows] == [2, *[1] * (len(rows) - 1)], log


IN_A_LOOP = """
import argparse
p = argparse.ArgumentParser()
for name in sorted({"layers": 0, "tag": 0}):
    p.add_argument("--" + name)
given = p.parse_args()
print([int(width) for width in getattr(given, "layers").split("x")])
"""


def test_a_list_is_not_repeated_where_the_last_word_would_win(world: World) -> None:
    world.write("train.py", IN_A_LOOP)
    world.write("sweep.yaml", "command: python train.py\nparameters: {layers: {value: [3, 4]}}\n")
    assert world.run("sweep", "-y", "--wait", "sweep.yaml").code != 0
    row = world.run("status", "sweep", "--json").json[0]
    assert (row["state"], row["attempt"]) == ("failed", 1)
    assert "style: {keys: {layers: {lists: comma}}}" in world.run("logs", "sweep").out


def test_a_parameter_the_script_lacks_fails_at_once(world: World) -> None:
    world.write("train.py", HIDDEN)
    world.write("sweep.yaml", "command: python train.py\nparameters: {nothing: true}\n")
    assert world.run("sweep", "-y", "--wait", "sweep.yaml").code != 0
    row = world.run("status", "sweep", "--json").json[0]
    assert (row["state"], row["attempt"]) == ("failed", 1)


def test_plan_and_dry_run_show_how_options_are_written(world: World) -> None:
    world.write("train.py", scripts.ARGPARSE)
    world.write("sweep.yaml", "command: python train.py\nparameters: {amp: [true, false], batch_size: 8}\n")
    said = "options: amp: true is --amp, false is left out; batch_size: --batch-size VALUE"
    assert said in world.run("plan", "sweep.yaml").out
    assert said in world.run("sweep", "-y", "--dry-run", "sweep.yaml").out
    assert world.run("plan", "sweep.yaml", "--json").json["options"] == [said]
    world.write("hostler.yaml", "command: python train.py\n")
    assert "options: amp: true is --amp" in world.run("run", "--dry-run", "amp=true").out


def test_a_style_against_the_parser_is_refused_at_submission(world: World) -> None:
    world.write("train.py", scripts.ARGPARSE)
    world.write(
        "sweep.yaml", "command: python train.py\nstyle: {booleans: value}\nparameters: {amp: [true, false]}\n"
    )
    answer = world.run("sweep", "-y", "sweep.yaml")
    assert answer.code == 2
    assert "style: booleans: value for amp, but train.py:12 declares --amp as store_true" in answer.err
    assert not world.store.exists()


def test_words_typed_by_a_person_stay_untouched(world: World) -> None:
    world.write(
        "train.py", "import json, sys\nprint(json.dumps({'argv': sys.argv[1:]}))\n" + scripts.ARGPARSE
    )
    answer = world.run("run", "train.py", "--amp", "true", "--tag", "a", "b")
    assert '["--amp", "true", "--tag", "a", "b"]' in answer.out + answer.err
    assert answer.code == 2
    assert world.run("status", "--json").json[0]["attempt"] == 1


def test_like_sets_flags_in_the_scripts_form(world: World) -> None:
    world.write("train.py", scripts.ARGPARSE)
    assert world.run("run", "--name", "first", "train.py", "--no-ema", "--tag", "a", "--tag", "b").code == 0
    answer = world.run("run", "--like", "first", "--name", "second", "ema=true", "amp=true", "cache=false")
    got = json.loads(next(line for line in answer.out.splitlines() if line.startswith("{")))
    assert (got["ema"], got["amp"], got["cache"], got["tag"]) == (True, True, False, ["a", "b"])
