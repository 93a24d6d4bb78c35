"""Reads what the script of a command declares. Nothing is imported or run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hostler.spec.parsers import argparse_calls, click_options, shell_options, whole_scripts
from hostler.spec.parsers.option import Declarations, Option, merged
from hostler.spec.parsers.sources import LARGEST, imported, sources
from hostler.spec.parsers.values import Reader, read_later
from hostler.spec.script import LAUNCHERS, script_args, script_at


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
    found = sources(script, roots, shown)
    if not found:
        return Declarations()
    modules = imported(found)
    options: list[Option] = []
    if modules & {
        "argparse",
        "jsonargparse",
        "configargparse",
        "simple_parsing",
        "tap",
        "lightning",
        "transformers",
    }:
        options += argparse_calls.options(found, command[script_args(command) :])
    if "click" in modules:
        options += click_options.options(found)
    if "typer" in modules:
        options += click_options.typer_options(found)
    if modules & {"absl", "tensorflow"}:
        options += whole_scripts.absl_options(found)
    way = whole_scripts.whole(found, modules)
    only_argparse = "argparse" in modules and not modules & {"click", "typer", "absl", "fire", "transformers"}
    later = read_later(node for source in found for node in source.nodes())
    closed = only_argparse and way == whole_scripts.Whole() and argparse_calls.is_closed(found)
    read = tuple(_read_as(option, later.get(option.dest)) for option in merged(options))
    return Declarations(read, way.form, shown, closed, way.tied, whole_scripts.is_hydra(found))


def _read_as(option: Option, later: Reader | None) -> Option:
    """The option, where it takes one text that the script makes a list of later."""
    if later is None or not option.is_single:
        return option
    form = replace(option.form, lists=later.lists, literal=later.literal)
    return replace(option, form=form, nests=later.lists == "json")


def _script(command: Sequence[str], folder: Path) -> tuple[Path | None, Path]:
    """The script, and the folder from which Python imports first."""
    at = script_at(command)
    if at is not None:
        path = folder / command[at]
        return path, Path(os.path.realpath(path)).parent
    is_launched = bool(command) and os.path.basename(command[0]) in LAUNCHERS
    if is_launched and "-m" in command[:-1]:
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
