"""Options read from a script's source, and what its real parser makes of the words it then gets."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import SpecError
from hostler.fleet import option_forms
from hostler.spec.argv import build
from hostler.spec.job import Job
from hostler.spec.parsers.declarations import declarations
from hostler.spec.project import default_project
from hostler.spec.style import Form, Style
from parser_scripts import ABSL, ARGPARSE, CASES, CLICK, CONFIGURATOR, FIRE, GETOPTS, GPT, HF, TYPER

PLACES = {"output_dir": "/o"}


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_suffix(".sh") if text.startswith("#!") else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def settled(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> Job:
    command = keys.pop("command", (sys.executable, "train.py"))
    command = ("python", *command[1:]) if command[0] == sys.executable else command
    job = Job(name="a", command=command, runs=(params,), **keys)
    return option_forms.settled(job, replace(default_project(folder), forms=style or Style()))


def words(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> list[str]:
    job = settled(folder, params, style, **keys)
    return list(build(job, params, PLACES, False).argv[len(job.command) :])


def got(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> dict[str, Any]:
    """What the script's own parser made of these parameters: it prints it as JSON."""
    job = settled(folder, params, style, **keys)
    argv = list(build(job, params, PLACES, False).argv)
    argv[0] = sys.executable if argv[0] == "python" else argv[0]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "key",
    ["amp", "cache", "drop", "ema", "use_bn", "trap", "maybe", "strict", "literal", "const", "light", "q"],
)
@pytest.mark.parametrize("value", [True, False])
def test_argparse_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layers", [1, 2, -3]),
        ("pair", [0.5, 1.5]),
        ("tag", ["a", "b c"]),
        ("more", ["a", "b"]),
        ("commas", [1, 2]),
        ("json", [1, [2, True]]),
        ("literal", [1, True, None, "a b"]),
        ("batch_size", 3),
    ],
)
def test_argparse_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {key: value})[key] == value


def test_true_is_a_flag_and_false_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"amp": True, "lr": 1}) == ["--amp", "--lr", "1"]
    assert words(tmp_path, {"amp": False}) == []


def test_a_key_is_passed_in_the_declared_spelling(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"batch_size": 3}) == ["--batch-size", "3"]
    assert words(tmp_path, {"b": 3, "no_cache": True}) == ["-b", "3", "--no-cache"]
    assert words(tmp_path, {"use-bn": True}) == ["--use_bn", "true"]


def test_choices_of_capital_words_get_capitals(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert got(tmp_path, {"pick": True})["pick"] == "True"


INDIRECT = {
    "function": {
        "train": "import json\nfrom options import parse\nprint(json.dumps(vars(parse())))\n",
        "options": "import argparse\ndef parse():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--amp', action='store_true')\n    p.add_argument('--tag', action='append')\n"
        "    return p.parse_args()\n"
        "if __name__ == '__main__':\n    q = argparse.ArgumentParser()\n"
        "    q.add_argument('--amp', type=str)\n",
    },
    "group": {
        "train": "import argparse, json\np = argparse.ArgumentParser()\ng = p.add_argument_group('x')\n"
        "m = g.add_mutually_exclusive_group()\nm.add_argument('--amp', action='store_true')\n"
        "g.add_argument('--tag', action='append')\nprint(json.dumps(vars(p.parse_args())))\n",
    },
    "alias": {
        "train": "import argparse, json\np = argparse.ArgumentParser()\nadd_arg = p.add_argument\n"
        "add_arg('--amp', action='store_true')\nadd_arg('--tag', action='append')\n"
        "print(json.dumps(vars(p.parse_args())))\n",
    },
    "package": {
        "train": "import json\nimport lib.opts as opts\nprint(json.dumps(vars(opts.Options().parse())))\n",
        "lib__opts": "from .base import Base\nclass Options(Base):\n    def more(self, p):\n"
        "        p.add_argument('--amp', action='store_true')\n",
        "lib__base": "import argparse\nclass Base:\n    def parse(self):\n"
        "        p = argparse.ArgumentParser()\n        p.add_argument('--tag', action='append')\n"
        "        self.more(p)\n        return p.parse_args()\n",
    },
    "constant": {
        "train": "import argparse, json\nFLAG = 'store_true'\np = argparse.ArgumentParser()\n"
        "p.add_argument('--amp', action=FLAG)\np.add_argument('--tag', action='append')\n"
        "print(json.dumps(vars(p.parse_args())))\n",
    },
}


@pytest.mark.parametrize("how", INDIRECT)
def test_a_parser_built_elsewhere_is_read(tmp_path: Path, how: str) -> None:
    write(tmp_path, **INDIRECT[how])
    for value in (True, False):
        assert got(tmp_path, {"amp": value, "tag": ["a", "b"]}) == {"amp": value, "tag": ["a", "b"]}


def test_a_module_started_with_m_is_read(tmp_path: Path) -> None:
    write(tmp_path, lib__train=INDIRECT["group"]["train"])
    command = ("python", "-m", "lib.train")
    assert got(tmp_path, {"amp": False, "tag": ["a"]}, command=command) == {"amp": False, "tag": ["a"]}


@pytest.mark.parametrize(
    "line",
    [
        "p.add_argument('--amp', action=choose())",
        "p.add_argument('--amp', **common)",
        "p.add_argument('--amp', action=Mine)",
        "p.add_argument('--' + 'amp', action='store_true')",
        "p.add_argument('--amp', action='store_true')\np.add_argument('--amp', type=str)",
        "other(p)",
    ],
)
def test_what_cannot_be_read_is_unknown(tmp_path: Path, line: str) -> None:
    write(tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\n{line}\np.parse_args()\n")
    form = settled(tmp_path, {"amp": True}).forms.of("amp")
    assert (form.booleans, form.true, form.false, form.declared) == ("", None, None, True)


def test_reading_neither_imports_nor_runs_the_script(tmp_path: Path) -> None:
    mark = "open('ran', 'w')\n"
    files = {name: mark + text for name, text in INDIRECT["function"].items()}
    write(tmp_path, **files)
    assert words(tmp_path, {"amp": True}) == ["--amp"]
    assert not (tmp_path / "ran").exists()


def test_broken_or_absent_source_leaves_options_as_usual(tmp_path: Path) -> None:
    assert words(tmp_path, {"amp": True}) == ["--amp", "true"]
    for text in ("def (", "\0", "x" * 10):
        write(tmp_path, train=text)
        assert words(tmp_path, {"amp": True, "l": [1, 2]}) == ["--amp", "true", "--l", "1", "2"]


def test_a_surely_unknown_parameter_is_noted_and_passed(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n",
    )
    job = settled(tmp_path, {"lr": 1, "wd": 2})
    assert list(option_forms.lines(job)) == ["options: wd: not among the script's options"]
    assert build(job, {"lr": 1, "wd": 2}, PLACES, False).argv[2:] == ("--lr", "1", "--wd", "2")


@pytest.mark.parametrize("change", ["p.parse_known_args()", "add_more(p)", "p.parse_args(); trainer.add(p)"])
def test_a_parser_that_others_may_extend_is_not_noted(tmp_path: Path, change: str) -> None:
    write(
        tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\n{change}\n"
    )
    assert list(option_forms.lines(settled(tmp_path, {"wd": 2}))) == []


@pytest.mark.parametrize("key", ["amp", "ema", "look", "use_bn"])
@pytest.mark.parametrize("value", [True, False])
def test_click_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=CLICK)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(("key", "value"), [("tags", ["a", "b"]), ("pair", [0.5, 1.5]), ("batch_size", 3)])
def test_click_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=CLICK)
    assert got(tmp_path, {key: value})[key] == value


@pytest.mark.parametrize("key", ["amp", "ema", "accept", "force"])
@pytest.mark.parametrize("value", [True, False])
def test_typer_gets_a_boolean_in_its_own_form(tmp_path: Path, key: str, value: bool) -> None:
    write(tmp_path, train=TYPER)
    assert got(tmp_path, {key: value})[key] is value


@pytest.mark.parametrize(
    ("key", "value"), [("layers", [1, 2]), ("tags", ["a", "b"]), ("pair", [0.5, 1.5]), ("batch_size", 3)]
)
def test_typer_gets_a_list_in_its_own_form(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=TYPER)
    assert got(tmp_path, {key: value})[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("amp", True),
        ("amp", False),
        ("ema", True),
        ("ema", False),
        ("names", ["a", "b"]),
        ("layers", [1, 2]),
        ("tag", ["a b", "c"]),
        ("lr", -0.5),
    ],
)
def test_absl_gets_its_flags_tied_by_equals(tmp_path: Path, key: str, value: Any) -> None:
    write(tmp_path, train=ABSL)
    assert got(tmp_path, {key: value})[key] == value
    assert all(word.startswith(f"--{key}=") for word in words(tmp_path, {key: value}))


def test_fire_gets_python_literals_tied_by_equals(tmp_path: Path) -> None:
    write(tmp_path, train=FIRE)
    params = {"amp": False, "layers": [1, True, "a"], "lr": 0.5, "name": "b", "digits": "12"}
    found = dict(word[2:].split("=", 1) for word in words(tmp_path, params))
    assert found["name"] == "b"
    assert {k: ast.literal_eval(v) for k, v in found.items() if k != "name"} == {
        key: value for key, value in params.items() if key != "name"
    }


@pytest.mark.skipif(not importlib.util.find_spec("transformers"), reason="transformers is not installed")
@pytest.mark.parametrize("value", [True, False])
def test_hf_argument_parser_gets_values_and_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=HF)
    params = {"amp": value, "ema": value, "layers": [1, 2], "batch_size": 3}
    assert got(tmp_path, params) == params


def test_lightning_cli_gets_values_and_json_lists(tmp_path: Path) -> None:
    write(tmp_path, train="from lightning.pytorch.cli import LightningCLI\nLightningCLI()\n")
    params = {"trainer.fast": True, "layers": [1, 2]}
    assert words(tmp_path, params) == ["--trainer.fast", "true", "--layers", "[1,2]"]


@pytest.mark.parametrize("value", [True, False])
def test_a_configurator_gets_python_literals_tied_by_equals(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=GPT, configurator=CONFIGURATOR)
    params = {"compile": value, "layers": [1, 2], "dataset": "12", "lr": 0.5}
    assert got(tmp_path, params) == params


@pytest.mark.parametrize("value", [True, False])
def test_bash_getopts_gets_letters_and_repeated_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=GETOPTS)
    found = got(tmp_path, {"v": value, "n": "x", "l": [1, 2], "c": [3, 4]}, command=("bash", "train.sh"))
    assert found == {"v": value, "n": "x", "l": "1 2", "c": "3 4"}


@pytest.mark.parametrize("value", [True, False])
def test_bash_case_arms_get_flags_values_and_lists(tmp_path: Path, value: bool) -> None:
    write(tmp_path, train=CASES)
    found = got(tmp_path, {"verbose": value, "name": "x", "item": [1, 2]}, command=("bash", "train.sh"))
    assert found == {"verbose": value, "name": "x", "item": "1 2"}


@pytest.mark.parametrize(
    ("params", "style", "said"),
    [
        (
            {"amp": True},
            Style(Form(booleans="value")),
            "style: booleans: value for amp, but train.py:12 declares --amp as store_true "
            "(leave booleans out, or style: {keys: {amp: {booleans: bare}}})",
        ),
        (
            {"use_bn": True},
            Style(Form(booleans="bare")),
            "style: booleans: bare for use_bn, but train.py:16 declares --use_bn with one value "
            "(leave booleans out, or style: {keys: {use_bn: {booleans: value}}})",
        ),
        (
            {"tag": ["a", "b"]},
            Style(keys={"tag": Form(lists="spaces")}),
            "style: lists: spaces for tag, but train.py:27 declares --tag with action='append' "
            "(leave lists of tag out, or say repeat)",
        ),
    ],
)
def test_a_style_against_the_parser_is_refused(
    tmp_path: Path, params: dict[str, Any], style: Style, said: str
) -> None:
    write(tmp_path, train=ARGPARSE)
    with pytest.raises(SpecError) as error:
        settled(tmp_path, params, style)
    assert str(error.value) == said


def test_a_style_that_concerns_no_value_is_not_refused(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    assert words(tmp_path, {"batch_size": 3}, Style(Form(booleans="bare", lists="comma"))) == [
        "--batch-size",
        "3",
    ]


def test_a_configurator_refuses_the_style_with_spaces(tmp_path: Path) -> None:
    write(tmp_path, train=GPT, configurator=CONFIGURATOR)
    with pytest.raises(SpecError, match=r"train.py reads only --lr=VALUE"):
        settled(tmp_path, {"lr": 0.1}, Style(Form(assign="space")))


def test_a_flag_that_cannot_be_false_is_refused(tmp_path: Path) -> None:
    text = "import argparse\np = argparse.ArgumentParser()\n"
    text += "p.add_argument('--amp', action='store_true', default=True)\np.parse_args()\n"
    write(tmp_path, train=text)
    with pytest.raises(
        SpecError, match=r"amp: false, but train.py:3 declares --amp as store_true with default True"
    ):
        settled(tmp_path, {"amp": False})
    assert words(tmp_path, {"amp": True}) == ["--amp"]


def test_explicit_style_stands_over_what_is_read(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    mixed = Style(Form(assign="equals"), {"commas": Form(lists="comma"), "ema": Form(booleans="bare")})
    assert words(tmp_path, {"ema": True, "commas": [1, 2], "lr": 1, "tag": ["a", "b"]}, mixed) == [
        "--ema", "--commas=1,2", "--lr=1", "--tag=a", "--tag=b",
    ]  # fmt: skip


def test_options_of_the_script_are_found_by_key_and_name(tmp_path: Path) -> None:
    write(tmp_path, train=ARGPARSE)
    declared = declarations(("python", "train.py"), tmp_path, tmp_path)
    assert declared.find("learning") is None
    found = declared.find("no-cache")
    assert found and (found.form.true, found.form.false) == (("--no-cache",), ())
