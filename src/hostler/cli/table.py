"""The table of runs: live with rich where there is a terminal, plain lines where there isn't."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli import output
from hostler.cli.paint import COLOURS, columns
from hostler.cli.summon import worker_command
from hostler.records import serving, sweeps
from hostler.records.log import CAP
from hostler.records.rows import Row
from hostler.records.state import PAUSED, QUEUED, RUNNING
from hostler.spec.units import show_duration
from hostler.store import Store

if TYPE_CHECKING:
    from rich.table import Table

HEAD = ("NAME", "STATE", "STEP", "METRICS", "TIME", "HOST", "PARAMETERS")
FIRM = {"NAME": 32, "STATE": 24, "STEP": 12, "TIME": 24}  # columns that a narrow terminal cuts last
STEPS = ("steps", "max_steps", "num_steps", "total_steps", "iterations", "epochs", "max_epochs", "num_epochs")


def print_table(found: Sequence[Row]) -> None:
    if is_terminal():
        from rich.console import Console

        Console(no_color=env.no_color(), highlight=False).print(_rich(found))
    else:
        click.echo("\n".join(columns((HEAD, *map(_cells, found)), indent="")))
    click.echo(output.counts(found), err=True)


def watch_table(
    look: Callable[[], Sequence[Row]],
    goes_on: Callable[[Sequence[Row]], bool] = lambda found: _open(found),
    every: float = 1.0,
) -> None:
    """While it goes on: redrawn in place on a terminal, a line per change elsewhere."""
    if not is_terminal():
        _watch_lines(look, goes_on, every)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(no_color=env.no_color(), highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            found = look()
            live.update(_rich(_most_telling(found, console.height - 3)), refresh=True)
            if not goes_on(found):
                break
            time.sleep(every)
    click.echo(output.counts(found), err=True)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def nobody(store: Store, found: Sequence[Row], say: output.Say | None = None) -> str:
    """What to type if runs wait and no living worker takes them; '' if somebody does, or
    if their sweep is halted."""
    waiting = [row for row in found if row.state == QUEUED or (row.state == RUNNING and row.stale)]
    if not waiting:
        return ""
    now = serving.look(store, say)
    served = {sweep: now.serves(sweep) for sweep in {row.sweep for row in waiting}}
    held = {sweep for sweep, there in served.items() if not there and sweeps.why_halted(store, sweep, say)}
    unserved = [row for row in waiting if not (served[row.sweep] or row.sweep in held or row.by_hand)]
    if not unserved:
        own = sum(row.by_hand for row in waiting)
        return f"{own} of scripts started by hand: each goes on when it is started again" if own else ""
    kinds = {"queued" if row.state == QUEUED else "lost" for row in unserved}
    what = f"{len(unserved)} {' or '.join(sorted(kinds, reverse=True))} run{'s' * (len(unserved) != 1)}"
    return f"nobody works on {what}: {worker_command(store)}"


def state_text(row: Row) -> str:
    if row.state == RUNNING and row.stale:
        age = f" {show_duration(row.beat_age)}" if row.beat_age is not None else ""
        return f"lost?{age}"
    if row.state == RUNNING and row.stop:
        return "stopping" if row.stop == "person" else f"stopping: {row.stop}"
    if row.forming:
        return f"forming {row.forming}"
    if row.state == RUNNING and row.together:
        return f"running, {with_others(row.together)}"
    if row.failure and row.state == "failed":
        return f"failed: {row.failure.get('kind', '')}"
    if row.state == PAUSED and row.paused_by == CAP:
        return "paused: cap"
    return row.state


def with_others(count: int) -> str:
    return f"trained together with {count} other{'s' * (count != 1)}"


def eta(row: Row, now: float) -> float | None:
    """Seconds left, where the parameters say how many steps there are."""
    total = next((row.params[k] for k in STEPS if k in row.params), None)
    if isinstance(total, bool) or not isinstance(total, (int, float)):
        return None
    if row.state != RUNNING or row.stale or not row.step or not row.started or row.step >= total:
        return None
    return (now - row.started) / row.step * (total - row.step)


def _watch_lines(
    look: Callable[[], Sequence[Row]], goes_on: Callable[[Sequence[Row]], bool], every: float
) -> None:
    said: dict[str, tuple[str, ...]] = {}
    while True:
        found = look()
        for row in found:
            cells = _cells(row)
            still = (*cells[:4], *cells[5:])  # time alone is no news
            if said.get(row.id) != still:
                said[row.id] = still
                click.echo("  ".join(filter(None, cells)))
        if not goes_on(found):
            return
        time.sleep(every)


def _most_telling(found: Sequence[Row], room: int) -> Sequence[Row]:
    """What fits on the screen: what runs first, then what waits, then the newest ends."""
    if len(found) <= room:
        return found
    order = {RUNNING: 0, "failed": 1, QUEUED: 2}
    return sorted(found, key=lambda row: (order.get(row.state, 3), -(row.started or 0)))[: max(1, room)]


def _open(found: Sequence[Row]) -> bool:
    return any(row.state in (QUEUED, RUNNING) for row in found)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        state_text(row),
        "" if row.step is None else str(row.step),
        output.metrics_text(row),
        _time(row),
        row.host or "",
        output.params_text(row),
    )


def _time(row: Row) -> str:
    if row.seconds is not None:
        return show_duration(row.seconds)
    if not row.started or row.state != RUNNING:
        return ""
    now = time.time()
    left = eta(row, now)
    spent = show_duration(round(max(0.0, now - row.started)))
    return spent if left is None else f"{spent} (eta {show_duration(round(left))})"


def _rich(found: Sequence[Row]) -> Table:
    from rich.table import Table
    from rich.text import Text

    lines = [_cells(row) for row in found]
    used = [any(cells[n] for cells in lines) for n in range(len(HEAD))]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for n, name in enumerate(HEAD):
        if used[n]:
            longest = max(len(name), *(len(cells[n]) for cells in lines))
            least = min(longest, FIRM.get(name, len(name)))
            table.add_column(name.lower(), no_wrap=True, overflow="ellipsis", min_width=least)
    for row, cells in zip(found, lines, strict=True):
        colour = "red" if row.stale else COLOURS.get(row.state, "white")
        shown = [Text(cell, style=colour if n == 1 else "") for n, cell in enumerate(cells)]
        table.add_row(*(cell for n, cell in enumerate(shown) if used[n]))
    return table
