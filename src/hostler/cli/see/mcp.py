"""`hostler mcp`: a server for assistants, by the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import sys

import click

from hostler import terminal
from hostler.cli import here
from hostler.cli.extras import needs


def command(actions: bool, store_url: str | None) -> int:
    """Answer an assistant's questions about this folder's project and store until it closes our input."""
    root, url = here.project().root, here.store_url(store_url)
    with needs("mcp"):
        from hostler.cli.assistants.server import Desk, serve
    if sys.stdin.isatty():
        click.echo(
            "hostler: waiting for a client's messages; docs/assistants.md has the settings of clients",
            err=True,
        )
    sys.stdout = terminal.unguarded(sys.stdout)  # the protocol's own channel: JSON, with everything escaped
    serve(Desk(root, url, actions))
    return 0
