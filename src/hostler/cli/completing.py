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
    for one in command.params:
        if isinstance(one.type, (click.Path, click.Choice)):
            continue
        if one.name in FLEETS:
            one.type = _Fleets()
        elif verb == "tag" or (one.name in NAMES and (isinstance(one, click.Argument) or one.name == "like")):
            one.type = _SweepName()
        elif one.name == "words":
            one.type = click.Path()


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
