"""Usage errors of real parsers to the forms that they want."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostler.spec.parsers.usage_errors import open_keys, other_forms
from hostler.spec.style import Form, Style, words

ARGPARSE = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--a-long-option-so-that-the-usage-takes-several-lines", type=int)
p.add_argument("--amp", "-a", action="store_true")
p.add_argument("--ema", action=argparse.BooleanOptionalAction)
p.add_argument("--bn", type=lambda s: s == "true")
p.add_argument("--tag", action="append")
p.add_argument("--layers", nargs="+")
p.parse_args()
"""
CLICK = """
import click
@click.command()
@click.option("--amp", is_flag=True)
@click.option("--bn", type=bool)
@click.option("--tag", multiple=True)
def main(**given): pass
main()
"""
TYPER = """
import typer
from typing import List
def main(amp: bool = False, bn: str = "", tag: List[str] = typer.Option([])): pass
typer.run(main)
"""


def refused(folder: Path, script: str, params: dict[str, Any], forms: Style) -> str:
    (folder / "train.py").write_text(script)
    argv = [word for key, value in params.items() for word in words(key, value, forms.of(key))]
    done = subprocess.run([sys.executable, "train.py", *argv], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2, (argv, done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.mark.parametrize("script", [ARGPARSE, CLICK, TYPER], ids=["argparse", "click", "typer"])
@pytest.mark.parametrize(
    ("params", "forms"),
    [
        ({"amp": True, "bn": True}, {"amp": Form("bare")}),
        ({"amp": False}, {"amp": Form("bare")}),
        ({"tag": ["x", "y", "z"]}, {"tag": Form(lists="repeat")}),
        ({"tag": ["x", "y"], "amp": False}, {"tag": Form(lists="repeat"), "amp": Form("bare")}),
    ],
)
def test_a_usage_error_tells_the_other_form(
    tmp_path: Path, script: str, params: dict[str, Any], forms: dict[str, Form]
) -> None:
    sure = Style().given({"bn": Form("value")})
    assert other_forms(refused(tmp_path, script, params, sure), params, sure) == forms


@pytest.mark.parametrize("script", [ARGPARSE, CLICK], ids=["argparse", "click"])
@pytest.mark.parametrize(
    ("params", "form", "other"),
    [({"amp": True}, Form(assign="equals"), Form("bare")), ({"bn": True}, Form("bare"), Form("value"))],
)
def test_a_usage_error_that_names_the_key_tells_its_form(
    tmp_path: Path, script: str, params: dict[str, Any], form: Form, other: Form
) -> None:
    key = next(iter(params))
    forms = Style(form)
    assert other_forms(refused(tmp_path, script, params, forms), params, forms) == {key: other}


def test_usage_of_argparse_tells_the_form_of_each(tmp_path: Path) -> None:
    params = {"amp": True, "ema": False, "bn": True, "layers": [1, 2], "tag": [1, 2]}
    found = other_forms(refused(tmp_path, ARGPARSE, params, Style()), params, Style())
    assert found == {"amp": Form("bare"), "ema": Form("no-prefix"), "tag": Form(lists="repeat")}


def test_an_option_the_script_lacks_tells_no_form(tmp_path: Path) -> None:
    for script in (ARGPARSE, CLICK):
        params = {"nothing": True, "x": [1, 2]}
        assert other_forms(refused(tmp_path, script, params, Style()), params, Style()) == {}


def test_surplus_words_that_fit_several_keys_tell_nothing() -> None:
    printed = "Usage: train.py [OPTIONS]\n\nError: Got unexpected extra argument (true)\n"
    assert other_forms(printed, {"a": True, "b": True}, Style()) == {}
    assert other_forms(printed, {"a": True, "b": False}, Style()) == {"a": Form("bare")}


def test_errors_of_absl_and_fire_tie_values_by_equals() -> None:
    params = {"amp": True, "layers": [1, 2], "lr": 0.1}
    absl = other_forms("USAGE: train.py [flags]\nToo many command-line arguments.\n", params, Style())
    assert absl == {"amp": Form("value", assign="equals")}
    fire = other_forms("ERROR: Could not consume arg: 2\nUsage: train.py <flags>\n", params, Style())
    assert fire == {"layers": Form(lists="json", assign="equals", literal=True)}


def test_other_output_tells_no_form() -> None:
    for printed in (
        "",
        "Traceback\nValueError: x\n",
        "usage: t.py [--amp]\nt.py: error: argument --lr: bad\n",
    ):
        assert other_forms(printed, {"amp": True}, Style()) == {}


def test_only_booleans_and_lists_of_unknown_form_are_open() -> None:
    forms = Style().given({"sure": Form("value"), "flag": Form("bare", true=("--flag",), false=())})
    params = {"sure": True, "flag": True, "lr": 0.1, "amp": False, "m": {"l": [1]}}
    assert open_keys(params, forms) == {"amp": False, "m.l": [1]}
