"""The table of runs: live with rich where there is a terminal, plain lines where there isn't."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli import output
from hostler.records.rows import Row
from hostler.records.state import QUEUED, RUNNING
from hostler.spec.units import show_duration

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "diverged": "red",
    "paused": "yellow",
    "stopped": "yellow",
    "pruned": "blue",
    "queued": "white",
}
HEAD = ("NAME", "STATE", "STEP", "METRICS", "TIME", "HOST", "PARAMETERS")


def print_table(found: Sequence[Row]) -> None:
    if not found:
        click.echo("no runs yet; hostler run train.py --lr 0.1 starts one")
    elif is_terminal():
        from rich.console import Console

        Console(no_color=env.no_color()).print(_rich(found))
    else:
        click.echo("\n".join("  ".join(cells).rstrip() for cells in (HEAD, *map(_cells, found))))
    if found:
        click.echo(output.counts(found), err=True)


def watch_table(look: Callable[[], Sequence[Row]], every: float = 1.0) -> None:
    """Until all has ended: redrawn in place on a terminal, a line per change elsewhere."""
    if not is_terminal():
        _watch_lines(look, every)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(no_color=env.no_color()), auto_refresh=False) as live:
        while True:
            found = look()
            live.update(_rich(found), refresh=True)
            if not _open(found):
                return
            time.sleep(every)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def _watch_lines(look: Callable[[], Sequence[Row]], every: float) -> None:
    said: dict[str, tuple[str, ...]] = {}
    while True:
        found = look()
        for row in found:
            cells = _cells(row)
            if said.get(row.id) != cells:
                said[row.id] = cells
                click.echo("  ".join(cells).rstrip())
        if not _open(found):
            return
        time.sleep(every)


def _open(found: Sequence[Row]) -> bool:
    return any(row.state in (QUEUED, RUNNING) for row in found)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        _state(row),
        "" if row.step is None else str(row.step),
        output.metrics_text(row),
        _time(row),
        row.host or "",
        output.params_text(row),
    )


def _state(row: Row) -> str:
    if row.state == RUNNING and row.stale:
        age = f" {show_duration(row.beat_age)}" if row.beat_age is not None else ""
        return f"lost?{age}"
    if row.state == RUNNING and row.stop:
        return "stopping"
    if row.failure and row.state == "failed":
        return f"failed: {row.failure['kind']}"
    return row.state


def _time(row: Row) -> str:
    if row.seconds is not None:
        return show_duration(round(row.seconds, 1))
    if row.started and row.state == RUNNING:
        return show_duration(round(max(0.0, time.time() - row.started))) + _eta(row)
    return ""


def _eta(row: Row) -> str:
    """Time left, where the parameters say how many steps there are."""
    total = next((row.params[k] for k in ("steps", "max_steps", "epochs") if k in row.params), None)
    if not isinstance(total, (int, float)) or not row.step or not row.started or row.step >= total:
        return ""
    left = (time.time() - row.started) / row.step * (total - row.step)
    return f" (eta {show_duration(round(left))})"


def _rich(found: Sequence[Row]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in HEAD:
        table.add_column(name.lower(), no_wrap=name in ("NAME", "STATE", "STEP", "TIME"), overflow="ellipsis")
    for row in found:
        cells = _cells(row)
        colour = "red" if row.stale else COLOURS.get(row.state, "white")
        table.add_row(cells[0], f"[{colour}]{cells[1]}[/]", *map(_escape, cells[2:]))
    return table


def _escape(text: str) -> str:
    return text.replace("[", "\\[")
