"""Completes words of a command line for a shell: names of sweeps, fleets, files.

Asked with every press of a key: only a store that is a folder is looked at, and whatever cannot be read
completes nothing.
"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from hostler.cli import here
from hostler.errors import HostlerError
from hostler.store import registry

NAMES = frozenset({"names", "name", "run", "sweep", "a", "b", "like"})
FLEETS = frozenset({"on", "fleet", "host"})


def teach(verb: str, command: click.Command) -> None:
    """The parameters of a verb, by their names, each with what it can be."""
    for param in command.params:
        if isinstance(param.type, (click.Path, click.Choice)):
            continue
        if param.name in FLEETS:
            param.type = _Fleets()
        elif verb == "tag" or (
            param.name in NAMES and (isinstance(param, click.Argument) or param.name == "like")
        ):
            param.type = _SweepName()
        elif param.name == "words":
            param.type = click.Path()


class _SweepName(StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from hostler.records.sweep import sweeps

        try:
            url = here.store_url(None)
            found = [] if "://" in url else sweeps.names(registry.open_at(url))
        except HostlerError:
            return []
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]


class _Fleets(StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            fleets = here.project().fleets
        except HostlerError:
            return []
        return [
            CompletionItem(name, help=fleet.backend)
            for name, fleet in fleets.items()
            if name.startswith(incomplete)
        ]
