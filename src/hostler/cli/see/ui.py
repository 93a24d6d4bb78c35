"""`hostler ui`: the dashboard, here, until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from hostler.cli import here
from hostler.cli.extras import needs
from hostler.cli.terminal import output
from hostler.errors import HostlerError
from hostler.fleet import late_hosts
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.spec.states import QUEUED
from hostler.store import Store


def command(
    port: int,
    host: str,
    token_file: Path | None,
    names: tuple[str, ...],
    no_browser: bool,
    store_url: str | None,
) -> int:
    """Open a dashboard of the store in the browser: live, with stop and retry. Ctrl-C ends it; runs go on."""
    url = here.store_url(store_url)
    store = here.open_here(store_url)
    from hostler.analysis.board.watcher import watching

    def say(address: str, page: Path) -> None:
        click.echo(f"{address}\n  {store.url}; Ctrl-C ends it, runs go on")
        sys.stdout.flush()
        if not no_browser and sys.stdout.isatty():
            webbrowser.open(page.as_uri())  # the address itself would be seen in the list of processes

    def wake(waiting: Sequence[str]) -> str:
        return _start(store, url, waiting)

    with late_hosts.awaited(url), watching(store) as watcher:
        with needs("analysis"):
            from hostler.analysis.board.serve import ListenAddress, serve
        serve(store, watcher, ListenAddress(host, port, token_file, names), say, wake)
    return 0


def _start(store: Store, url: str, waiting: Sequence[str]) -> str:
    """Workers of this folder's fleet for these sweeps, as `hostler retry` starts them."""
    from hostler.fleet.launcher import launcher
    from hostler.fleet.secrets import check_secrets

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
