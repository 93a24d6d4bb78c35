"""`hostler plot`: plots of runs into a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from hostler.cli import here
from hostler.cli.extras import needs, telling
from hostler.cli.terminal.output import show_in_browser
from hostler.errors import UsageError
from hostler.records.run import resolve
from hostler.store import Store


def command(
    kind: str,
    names: tuple[str, ...],
    output: str | None,
    every: bool,
    show: bool,
    style: str,
    store_url: str | None,
    **given: Any,
) -> int:
    """Plot the runs of these sweeps, or of the newest."""
    store = here.open_here(store_url)
    whole = every or (kind == "archive" and not names)
    sweeps, (low, high) = None if whole else _sweeps(store, names), _range(given.pop("y_range"))
    options = {**given, "keys": tuple(filter(None, given["keys"].split(","))), "low": low, "high": high}
    with needs("analysis"), telling():
        from hostler.analysis.plots import draw, save

        chart = draw(store.url, kind, sweeps, **options)
        try:
            path = save(chart, Path(output or f"{kind}.png"), style=style)
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}", hint="-o FILE") from None
    click.echo(path)
    if chart.note:
        click.echo(f"  {chart.note}", err=True)
    if show:
        show_in_browser(path)
    return 0


def _sweeps(store: Store, names: tuple[str, ...]) -> list[str]:
    meant = here.named_or_newest(store, names, swept=True, or_before=True)
    return [resolve.sweep(store, name) for name in meant]


def _range(words: str) -> tuple[float | None, float | None]:
    if not words:
        return None, None
    parts = words.split(",")
    try:
        low, high = (float(part) if part.strip() else None for part in parts)
        if not all(part is None or math.isfinite(part) for part in (low, high)):
            raise ValueError(words)
    except ValueError:
        raise UsageError(
            f"--y-range {words}: expected two numbers with a comma between them", hint="for example 0.5,1"
        ) from None
    return low, high
