"""Older parsers, options that loops make, and commands of one script: what each gets of its parameters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from declared_options import got, settled, words, write
from hostler.errors import SpecError
from hostler.spec.parsers.declarations import may_repeat
from hostler.spec.style import Form, Style

OPTPARSE = """
import json, optparse
p = optparse.OptionParser()
p.add_option("--amp", action="store_true", default=False)
p.add_option("--quiet", action="store_false", dest="loud", default=True)
p.add_option("-l", "--layers", action="append", type="int")
p.add_option("--pair", nargs=2, type="float")
p.add_option("--size", type="int")
options, rest = p.parse_args()
assert not rest, rest
print(json.dumps(vars(options)))
"""
GETOPT = """
import getopt, json, sys
pairs, rest = getopt.getopt(sys.argv[1:], "vn:", ["amp", "no-ema", "layers=", "tag="])
assert not rest, rest
given = dict(pairs)
layers = given.get("--layers", "1").split(",")
print(json.dumps({"amp": "--amp" in given, "v": "-v" in given, "layers": layers}))
"""


@pytest.mark.parametrize(
    "params",
    [{"amp": True}, {"amp": False}, {"loud": False}, {"layers": [3, 4]}, {"pair": [0.5, 1.5]}, {"size": 3}],
)
def test_optparse_gets_values_in_its_own_form(tmp_path: Path, params: dict[str, Any]) -> None:
    write(tmp_path, train=OPTPARSE)
    assert got(tmp_path, params).items() >= params.items()


@pytest.mark.parametrize("params", [{"amp": True}, {"amp": False}, {"v": True}, {"layers": ["3", "4"]}])
def test_getopt_gets_values_in_its_own_form(tmp_path: Path, params: dict[str, Any]) -> None:
    write(tmp_path, train=GETOPT)
    assert got(tmp_path, params).items() >= params.items()


def test_a_list_that_getopt_would_lose_is_refused(tmp_path: Path) -> None:
    write(tmp_path, train=GETOPT)
    with pytest.raises(SpecError, match=r"train\.py:3 declares --tag with one value"):
        settled(tmp_path, {"tag": ["a", "b"]})
    assert words(tmp_path, {"tag": ["a", "b"]}, Style(Form(lists="repeat"))) == ["--tag", "a", "--tag", "b"]


OF_A_TABLE = """
import argparse, json
DEFAULTS = {"lr": 0.1, "amp": True, "layers": "1"}
p = argparse.ArgumentParser()
for key, value in DEFAULTS.items():
    p.add_argument(f"--{key}", type=type(value), default=value)
a = p.parse_args()
print(json.dumps({**vars(a), "layers": [int(n) for n in a.layers.split(",")]}))
"""
OF_FIELDS = """
import argparse, dataclasses, json
@dataclasses.dataclass
class Config:
    amp: bool = True
    lr: float = 0.1
p = argparse.ArgumentParser()
for field in dataclasses.fields(Config):
    p.add_argument("--" + field.name, type=field.type, default=field.default)
print(json.dumps(vars(p.parse_args())))
"""


@pytest.mark.parametrize("script", [OF_A_TABLE, OF_FIELDS], ids=["table", "fields"])
@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_with_the_type_of_its_default_arrives(tmp_path: Path, script: str, value: bool) -> None:
    write(tmp_path, train=script)
    assert got(tmp_path, {"amp": value, "lr": 0.5}).items() >= {"amp": value, "lr": 0.5}.items()


def test_a_list_is_written_as_the_script_splits_it(tmp_path: Path) -> None:
    write(tmp_path, train=OF_A_TABLE)
    assert got(tmp_path, {"layers": [3, 4]})["layers"] == [3, 4]


COMMANDS = """
import click, json

def shared(function):
    for option in (click.option("--ema", is_flag=True), click.option("--tag", multiple=True)):
        function = option(function)
    return function

@click.group()
def main():
    pass

@main.command()
@shared
@click.option("--amp", is_flag=True)
@click.option("--layers", callback=lambda c, o, text: [int(n) for n in (text or "").split(",") if n])
def train(**given):
    print(json.dumps(given))

@main.command("test")
@click.option("--amp", type=bool)
@click.option("--layers", multiple=True)
def check(**given):
    print(json.dumps(given))

main()
"""


@pytest.mark.parametrize("amp", [True, False])
@pytest.mark.parametrize("name", ["train", "test"])
def test_a_command_of_click_has_options_of_its_own(tmp_path: Path, name: str, amp: bool) -> None:
    write(tmp_path, train=COMMANDS)
    found = got(tmp_path, {"amp": amp, "layers": [3, 4]}, command=(sys.executable, "train.py", name))
    assert found["amp"] is amp
    assert [int(layer) for layer in found["layers"]] == [3, 4]


def test_options_of_a_shared_decorator_count(tmp_path: Path) -> None:
    write(tmp_path, train=COMMANDS)
    params = {"ema": True, "tag": ["a", "b"]}
    assert got(tmp_path, params, command=(sys.executable, "train.py", "train")).items() >= params.items()


TWO_OF_TYPER = """
import json, typer
from typing import List
app = typer.Typer()

@app.command()
def train(amp: bool = False, layers: List[int] = [1]):
    print(json.dumps({"amp": amp, "layers": layers}))

@app.command("eval")
def evaluate(amp: int = 0, layers: str = ""):
    print(json.dumps({"amp": bool(amp), "layers": [int(n) for n in layers.split(",")]}))

app()
"""


@pytest.mark.parametrize("amp", [True, False])
def test_a_command_of_typer_has_options_of_its_own(tmp_path: Path, amp: bool) -> None:
    write(tmp_path, train=TWO_OF_TYPER)
    params = {"amp": amp, "layers": [3, 4]}
    assert got(tmp_path, params, command=(sys.executable, "train.py", "train")) == params


@pytest.mark.parametrize(
    ("body", "is_so"),
    [
        ("p.add_argument('--' + 'x')", False),
        ("p.add_argument('--' + 'x', action='append')", True),
        ("class A(argparse.Action):\n  def __call__(self, p, n, v, o): setattr(n, self.dest, v)", False),
        ("class A(argparse.Action):\n  def __call__(self, p, n, v, o): getattr(n, 'x').append(v)", True),
        ("pass", True),  # a parser of somewhere else
    ],
)
def test_source_tells_whether_an_option_may_repeat(tmp_path: Path, body: str, is_so: bool) -> None:
    declared = (
        body if "add_argument" in body or body == "pass" else f"{body}\np.add_argument('--' + 'x', action=A)"
    )
    write(tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\n{declared}\n")
    assert may_repeat(("python", "train.py"), tmp_path) is is_so


IN_LOOPS = """
import argparse, json
FLAGS = ["amp", "ema"]
p = argparse.ArgumentParser()
for name in FLAGS:
    p.add_argument("--" + name, action="store_true")
for name, short in (("layers", "l"), ("tag", "t")):
    p.add_argument(f"--{name}", f"-{short}", action="append")
given, others = p.parse_known_args()
print(json.dumps(vars(given)))
"""


@pytest.mark.parametrize("amp", [True, False])
def test_options_of_a_loop_over_constants_are_read(tmp_path: Path, amp: bool) -> None:
    write(tmp_path, train=IN_LOOPS)
    found = got(tmp_path, {"amp": amp, "ema": not amp, "layers": ["3", "4"]})
    assert found == {"amp": amp, "ema": not amp, "layers": ["3", "4"], "tag": None}


OWN_ACTIONS = """
import argparse, json

class Commas(argparse.Action):
    def __call__(self, parser, given, text, option=None):
        setattr(given, self.dest, [int(part) for part in text.split(",")])

class Adds(argparse.Action):
    def __call__(self, parser, given, value, option=None):
        setattr(given, self.dest, [*(getattr(given, self.dest) or []), value])

class Words(argparse.Action):
    def __call__(self, parser, given, values, option=None):
        setattr(given, self.dest, list(values))

class Capital(argparse.Action):
    def __call__(self, parser, given, text, option=None):
        setattr(given, self.dest, {"True": True, "False": False}[text])

p = argparse.ArgumentParser()
p.add_argument("--layers", action=Commas)
p.add_argument("--tag", action=Adds)
p.add_argument("--words", action=Words, nargs="+")
p.add_argument("--amp", action=Capital)
print(json.dumps(vars(p.parse_args())))
"""


@pytest.mark.parametrize("amp", [True, False])
def test_action_of_the_scripts_own_is_read_as_a_type(tmp_path: Path, amp: bool) -> None:
    write(tmp_path, train=OWN_ACTIONS)
    params = {"layers": [3, 4], "tag": ["a", "b"], "words": ["c", "d"], "amp": amp}
    assert got(tmp_path, params) == params
