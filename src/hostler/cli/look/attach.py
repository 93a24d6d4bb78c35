"""`hostler attach`: follow a run as if it had been started here."""

from __future__ import annotations

from hostler.cli import here
from hostler.cli.terminal.follow import follow
from hostler.records.run import resolve


def command(run: str, raw: bool, store_url: str | None, as_json: bool) -> int:
    """Print a run's output until it ends; returns the script's exit code. Escape sequences are shown"""
    store = here.open_here(store_url)
    return follow(store, resolve.run(store, run), as_json=as_json, raw=raw)
