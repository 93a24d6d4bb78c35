"""`hostler report`: a sweep as one HTML page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hostler import made_files
from hostler.cli import here
from hostler.cli.extras import needs, telling
from hostler.cli.terminal.output import show_in_browser
from hostler.errors import UsageError
from hostler.records.run import resolve


def command(
    sweep: str | None,
    output: str | None,
    metric: str | None,
    goal: str | None,
    of: str | None,
    show: bool,
    store_url: str | None,
) -> int:
    """Write a sweep as one HTML file: plots that answer the mouse, the table, errors, the best runs."""
    store = here.open_here(store_url)
    meant = here.named_or_newest(store, (sweep,) if sweep else (), swept=True, or_before=True)
    name = resolve.sweep(store, *meant)
    with needs("analysis"), telling():
        from hostler.analysis.report import report, without_metric

        text = report(store, name, metric=metric, goal=goal, of=of)
    path = Path(output or f"{name}.html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        made_files.mark(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="-o FILE") from None
    click.echo(path)
    made_files.mark_printed(f"{path}\n", sys.stdout)
    if metric is None and (line := without_metric(store, name)):
        click.echo(f"hostler: {line}", err=True)
    if show:
        show_in_browser(path)
    return 0
