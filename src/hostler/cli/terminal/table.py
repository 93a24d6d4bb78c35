"""The table of runs: live where there is a terminal, plain lines where there isn't."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli.terminal import output, screen
from hostler.cli.terminal.screen import COLOURS, columns, paint
from hostler.records.run.log import CAP, RUNG
from hostler.spec.states import PAUSED, QUEUED, RUNNING
from hostler.spec.units import show_duration

if TYPE_CHECKING:
    from hostler.records.rows import Row

HEAD = ("NAME", "STATE", "STEP", "METRICS", "TIME", "HOST", "PARAMETERS")
FIRM = {"NAME": 32, "STATE": 24, "STEP": 12, "TIME": 24}  # columns that a narrow terminal cuts last
STEPS = ("steps", "max_steps", "num_steps", "total_steps", "iterations", "epochs", "max_epochs", "num_epochs")


def print_table(found: Sequence[Row]) -> None:
    if is_terminal():
        click.echo("\n".join(_drawn(found)))
    else:
        click.echo("\n".join(columns((HEAD, *map(_cells, found)), indent="")))
    click.echo(output.counts(found), err=True)


def watch_table(
    look: Callable[[], Sequence[Row]],
    goes_on: Callable[[Sequence[Row]], bool] = lambda found: _open(found),
    every: float = 1.0,
) -> None:
    """Show the table while runs go on: redrawn in place on a terminal, a line per change elsewhere."""
    if not is_terminal() or env.dumb():
        _watch_lines(look, goes_on, every)
        return
    with screen.Live() as live:
        while True:
            found = look()
            live.show(_drawn(_most_telling(found, shutil.get_terminal_size().lines - 3)))
            if not goes_on(found):
                break
            time.sleep(every)
    click.echo(output.counts(found), err=True)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def need_a_worker(found: Sequence[Row]) -> list[Row]:
    """Runs that nobody has, or whose worker has fallen silent; a dead script needs a person."""
    waiting = [row for row in found if row.state == QUEUED or (row.state == RUNNING and row.stale)]
    return [row for row in waiting if not row.lost]


def state_text(row: Row) -> str:
    if row.lost:
        return row.counted
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
    if row.state == PAUSED and row.paused_by in (CAP, RUNG):
        return f"paused: {row.paused_by}"
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
    """The rows that fit on the screen: running ones first, then waiting ones, then the newest ends."""
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


def _drawn(found: Sequence[Row]) -> list[str]:
    """The table as wide as the terminal; columns in which nothing stands are left out."""
    cells = [_cells(row) for row in found]
    used = [n for n in range(len(HEAD)) if any(line[n] for line in cells)]
    head = [HEAD[n].lower() for n in used]

    def painted(row: int, column: int, text: str) -> str:
        if row < 0:
            return paint(text, bold=True)
        if used[column] != HEAD.index("STATE"):
            return text
        return paint(text, "red" if found[row].stale else COLOURS.get(found[row].counted, "white"))

    least = [FIRM.get(HEAD[n], len(HEAD[n])) for n in used]
    room = shutil.get_terminal_size().columns
    return screen.lines(head, [[line[n] for n in used] for line in cells], least, room, painted)
