"""`hostler ui`: the dashboard, here, until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from hostler.cli import here, output
from hostler.cli.extras import needs
from hostler.errors import HostlerError, UsageError
from hostler.records.rows import rows
from hostler.records.run.state import QUEUED
from hostler.records.sweep import sweeps
from hostler.store import Store


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Where (default: 8642, or any if taken)."
)
@click.option("--host", default="127.0.0.1", help="Beyond this machine: an address of it.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Ask for the token in this file of yours, made if missing (default: a new token each time).",
)
@click.option("--token", expose_value=False, callback=lambda *given: _no_token(given[2]), hidden=True)
@click.option("--name", "names", multiple=True, help="A further host name it is reached by (repeatable).")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@here.store_option
def command(
    port: int,
    host: str,
    token_file: Path | None,
    names: tuple[str, ...],
    no_browser: bool,
    store_url: str | None,
) -> int:
    """A dashboard of the store in the browser: live, with stop and retry. Ctrl-C ends it; runs go on.

    The address that it prints holds a token, without which nobody sees anything. Only this machine can reach
    it, unless --host says otherwise.
    """
    url = here.store_url(store_url)
    store = here.open_at(url)
    with needs("analysis"):
        from hostler.analysis.board.serve import Place, serve

    def say(address: str, page: Path) -> None:
        click.echo(f"{address}\n  {store.url}; Ctrl-C ends it, runs go on")
        sys.stdout.flush()
        if not no_browser and sys.stdout.isatty():
            webbrowser.open(page.as_uri())  # the address itself would be seen in the list of processes

    def wake(waiting: Sequence[str]) -> str:
        return _start(store, url, waiting)

    serve(store, Place(host, port, token_file, names), say, wake)
    return 0


def _no_token(given: str | None) -> None:
    if given is not None:
        raise UsageError(
            "--token shows the token to everybody who lists processes",
            "--token-file FILE, a file that you alone may read",
        )


def _start(store: Store, url: str, waiting: Sequence[str]) -> str:
    """Workers of this folder's fleet for these sweeps, as `hostler retry` starts them."""
    from hostler.fleet.launcher import check_secrets, launcher

    try:
        check_secrets(secret for name in waiting for secret in sweeps.load(store, name).wanted)
        workers = launcher(here.project(), url, None)
        shared = workers.engine.capabilities.shared
        queued = (
            sum(row.state == QUEUED for row in rows(store, waiting, say=output.saying())) if shared else 0
        )
        workers.start_missing(list(waiting), queued)
    except HostlerError as error:
        return f"queued, but no worker was started: {error}"
    return ""
