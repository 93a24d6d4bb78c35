"""`hostler completion`: prints the script for a shell to complete command lines; click's own, unchanged."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hostler.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HOSTLER_COMPLETE"  # click makes it of the program's name


def command(shell: str) -> int:
    """Print the script by which a shell completes verbs, options, sweeps, fleets and files."""
    from hostler.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"this click cannot complete commands in {shell}", hint="pip install -U click")
    click.echo(kind(cli, {}, "hostler", VARIABLE).source())
    return 0
