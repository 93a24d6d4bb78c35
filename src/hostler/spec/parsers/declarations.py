"""Reads what the script of a command declares. Nothing is imported or run."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hostler.spec.parsers import (
    argparse_calls,
    class_fields,
    click_options,
    default_tables,
    getopt_calls,
    shell_options,
    whole_scripts,
)
from hostler.spec.parsers.option import Declarations, Option, merged
from hostler.spec.parsers.sources import LARGEST, ScriptSource, imported, sources
from hostler.spec.parsers.values import Reader, calls, compared_later, last_name, read_later
from hostler.spec.script import script_args, script_at, starts_scripts

_ON_ARGPARSE = frozenset(
    {"argparse", "optparse", "jsonargparse", "configargparse", "simple_parsing", "tap", "lightning"}
    | {"transformers"}
)
_DECLARES = ("add_argument", "option")


def declarations(command: Sequence[str], folder: Path, root: Path) -> Declarations:
    """The options of a command's script, which runs in `folder`; none where it cannot be read."""
    script, beside = _script(command, folder)
    if script is None or not script.is_file():
        return Declarations()
    shown = os.path.relpath(script, folder)
    shown = script.name if shown.startswith("..") else shown
    if script.suffix == ".sh":
        return _of_shell(script, shown)
    roots = tuple(dict.fromkeys((beside, folder, root)))
    script_sources = sources(script, roots, shown)
    if not script_sources:
        return Declarations()
    modules = imported(script_sources)
    options = _options(script_sources, modules, command[script_args(command) :])
    way = whole_scripts.whole(script_sources, modules)
    only_argparse = "argparse" in modules and not modules & {"click", "typer", "absl", "fire", "transformers"}
    later = read_later(node for source in script_sources for node in source.nodes())
    compared = compared_later(node for source in script_sources for node in source.nodes())
    closed = only_argparse and way == whole_scripts.Whole() and argparse_calls.is_closed(script_sources)
    read = tuple(
        _compared_with(_read_as(option, later.get(option.dest)), compared.get(option.dest))
        for option in merged(options)
    )
    pairs = "omegaconf" in modules and whole_scripts.reads_pairs(script_sources)
    hydra = whole_scripts.is_hydra(script_sources)
    read_lists = {name: how.lists for name, how in later.items()}
    return Declarations(read, way.form, shown, closed, way.tied, hydra, pairs, read_lists)


def _options(found: tuple[ScriptSource, ...], modules: set[str], words: Sequence[str]) -> list[Option]:
    """Those of every library that the script imports. `words`: of its command, behind the script."""
    options: list[Option] = []
    if modules & _ON_ARGPARSE:
        options += argparse_calls.options(found, words)
        declared = {option.dest for option in options}
        tables = default_tables.options(found, argparse_calls.ADD)
        options += [option for option in tables if option.dest not in declared]
    if "getopt" in modules:
        options += getopt_calls.options(found)
    if "click" in modules:
        options += click_options.options(found, words)
    if "typer" in modules:
        options += click_options.typer_options(found, words)
    if "tyro" in modules:
        options += class_fields.tyro_options(found)
    if "tap" in modules:
        options += class_fields.tap_options(found)
    if modules & {"absl", "tensorflow"}:
        options += whole_scripts.absl_options(found)
    return options


def may_repeat(command: Sequence[str], folder: Path) -> bool:
    """Whether an option of the script may be given several times, as far as its source tells. Most parsers
    take the last of several values of any option, and say nothing."""
    script, beside = _script(command, folder)
    if script is None or script.suffix == ".sh" or not script.is_file():
        return True
    nodes = [node for one in sources(script, (beside, folder), "") for node in ast.walk(one.tree)]
    declares = any(last_name(call.func) in _DECLARES for call in calls(nodes))
    return not declares or any(_is_sign_of_repeats(node) for node in nodes)


def _is_sign_of_repeats(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return argparse_calls.is_action(node) and argparse_calls.adds_to_earlier(node)
    if isinstance(node, ast.keyword):
        return node.arg == "multiple"
    return isinstance(node, ast.Constant) and node.value in ("append", "extend", "append_const")


def _read_as(option: Option, later: Reader | None) -> Option:
    """The option, where it takes one text that the script makes a list of later."""
    if later is None or not option.is_single:
        return option
    form = replace(option.form, lists=later.lists, literal=later.literal)
    return replace(option, form=form, nests=later.lists == "json")


def _compared_with(option: Option, words: tuple[str, str] | None) -> Option:
    """The option, where it takes a text that the script compares with words for true and false."""
    form = option.form
    if words is None or not option.is_single or form.booleans != "value" or form.true is not None:
        return option
    true, false = ((f"{form.option}={w}",) if form.assign == "equals" else (form.option, w) for w in words)
    return replace(option, form=replace(form, true=true, false=false))


def _script(command: Sequence[str], folder: Path) -> tuple[Path | None, Path]:
    """The script, and the folder from which Python imports first."""
    at = script_at(command)
    if at is not None:
        path = folder / command[at]
        return path, Path(os.path.realpath(path)).parent
    if command and starts_scripts(command[0]) and "-m" in command[:-1]:
        path = folder.joinpath(*command[list(command).index("-m") + 1].split("."))
        files = (path.with_name(path.name + ".py"), path / "__main__.py")
        return next((file for file in files if file.is_file()), None), folder
    return None, folder


def _of_shell(script: Path, shown: str) -> Declarations:
    try:
        with open(script, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST)
    except OSError:
        return Declarations()
    return Declarations(merged(shell_options.options(text, shown)), script=shown)
