"""Shared by the files that declare verbs: options of several verbs, and the call of a verb's own module."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hostler.spec.states import COUNTED

if TYPE_CHECKING:
    from pathlib import Path

ANY = "any"  # of `--only`: all runs that count, whatever was chosen before

F = TypeVar("F", bound=Callable[..., Any])


def perform(module: str, given: dict[str, Any], function: str = "command") -> int:
    """Call the function of a verb's module with the options that were given. The module is imported now, so
    that `--help` loads none of it."""
    code: int = getattr(import_module(module), function)(**given)
    return code


class FilePath(click.Path):
    """A path that the verb gets as a `pathlib.Path`: that is imported when one was typed, not by `--help`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from pathlib import Path

        return Path(os.fsdecode(super().convert(value, param, ctx)))


def store_option(function: F) -> F:
    return click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Folder or bucket (default: hostler.yaml's, else .hostler).",
    )(function)


def init_from_option(function: F) -> F:
    return click.option(
        "--init-from",
        metavar="RUN[@STEP]|PATH|URL",
        help="Begin from this, found at $HOSTLER_DATA/init: a run's checkpoint, a sweep's best, a file.",
    )(function)


def goal_option(function: F) -> F:
    return click.option(
        "--goal",
        type=click.Choice(["max", "min", "maximize", "minimize"]),
        callback=lambda context, option, word: word and word[:3],
        help="Whether more or less is better (default: the sweep's).",
    )(function)


def of_option(function: F) -> F:
    return click.option(
        "--of",
        metavar="RULE",
        callback=_rule,
        help="Rank by this value: kept (best where its state is kept, else last), best, last, mean:5.",
    )(function)


def _rule(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
    if word is None:
        return None
    from hostler.spec.ranking import rule  # --help needs none of it

    try:
        return rule(word)
    except ValueError:
        raise click.BadParameter(f"{word!r} is not kept, best, last or mean:5") from None


def only_option(function: F) -> F:
    return click.option(
        "--only",
        type=click.Choice([*COUNTED, ANY]),
        help="Only runs that ended so (default: done, pruned and stopped).",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)


def yes_option(function: F) -> F:
    return click.option("-y", "--yes", is_flag=True, help="Don't ask.")(function)


def requeue_options(function: F) -> F:
    on = click.option(
        "--on", metavar="FLEET", help="Fleet to run on (default: hostler.yaml's `fleet`, else here)."
    )
    no_start = click.option("--no-start", is_flag=True, help="Only queue them: workers are up already.")
    return on(no_start(yes_option(function)))


def site_options(function: F) -> F:
    function = click.option("--zone", multiple=True, help="Zone to build in (repeatable).")(function)
    function = click.option(
        "--project", metavar="ID", help="The Google Cloud project (default: the fleet's)."
    )(function)
    return click.option(
        "--on", metavar="FLEET", help="Use the settings of this fleet (default: the first that has images)."
    )(function)
