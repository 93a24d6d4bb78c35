"""A line that shows how much has arrived in a folder, once it takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hostler.fleet.snapshot.size_limit import in_bytes
from hostler.records.checkpoint.tree import scan
from hostler.terminal import own

MOMENT = 1.0  # seconds
QUIET_EVERY = 10  # moments between two lines where there is no terminal


@contextmanager
def arriving_in(folder: Path) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(folder, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(folder: Path, done: threading.Event) -> None:
    terminal, n = sys.stderr.isatty(), 0
    while not done.wait(MOMENT):
        if terminal:
            click.echo(own(f"\r{in_bytes(scan(folder).size)} "), nl=False, err=True)
        elif n % QUIET_EVERY == 0:
            click.echo(f"hostler: {in_bytes(scan(folder).size)} so far", err=True)
        n += 1
    if terminal and n:
        click.echo("", err=True)
