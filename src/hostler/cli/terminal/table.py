"""The table of runs: live where there is a terminal, plain lines where there isn't."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hostler import env
from hostler.cli.terminal import output, run_columns, screen
from hostler.cli.terminal.run_columns import Column, Times
from hostler.cli.terminal.screen import COLOURS, paint, width
from hostler.records.run.log import CAP, RUNG
from hostler.spec.states import DOUBTFUL, PAUSED, QUEUED, RUNNING
from hostler.spec.units import counted, show_duration

if TYPE_CHECKING:
    from hostler.records.rows import Row

FIRM = {run_columns.NAME: 32, run_columns.STATE: 24}  # columns that a narrow terminal cuts last
WIDEST = 100_000  # in a pipe nothing is left out


def print_table(found: Sequence[Row], *, sort: str = "", columns: str = "") -> None:
    """Print runs as tables: the same heads on a terminal and in a pipe, where nothing is left out."""
    room = screen.size().columns if is_terminal() else WIDEST
    click.echo("\n".join(drawn(found, room, sort=sort, columns=columns)))
    click.echo(output.counts(found), err=True)


def watch_table(
    look: Callable[[], Sequence[Row]],
    goes_on: Callable[[Sequence[Row]], bool] = lambda found: _open(found),
    every: float = 1.0,
    *,
    sort: str = "",
    columns: str = "",
) -> None:
    """Show the table while runs go on: redrawn in place on a terminal, a line per change elsewhere."""
    if not is_terminal() or env.dumb():
        _watch_lines(look, goes_on, every)
        return
    with screen.Live() as live:
        while True:
            found = look()
            live.show(on_screen(found, screen.size(), sort=sort, columns=columns))
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
    if row.silent:
        age = f" {show_duration(row.beat_age)}" if row.beat_age is not None else ""
        return f"{DOUBTFUL}{age}"
    if row.state == RUNNING and row.stop:
        return {"person": "stopping", "pause": "pausing"}.get(row.stop, f"stopping: {row.stop}")
    if row.forming:
        return f"forming {row.forming}"
    if row.state == RUNNING and row.together:
        return f"running, {with_others(row.together)}"
    if row.failure and row.state == "failed":
        return f"failed: {row.failure.get('kind', '')}"
    if _is_parked(row):
        rung = row.step if row.rung is None else row.rung  # earlier versions did not note it
        return "paused: rung" if rung is None else f"paused: rung {rung}"
    if row.state == PAUSED and row.paused_by == CAP:
        return "paused: budget"
    return f"{row.state}: {row.why}" if row.why else row.state


def _is_parked(row: Row) -> bool:
    """Whether a pruner has set the run aside: nobody has to do anything."""
    return row.state == PAUSED and row.paused_by == RUNG


def with_others(count: int) -> str:
    return f"trained together with {counted(count, 'other')}"


def eta(row: Row, now: float) -> float | None:
    """Seconds left, where the parameters say how many steps there are."""
    if row.state != RUNNING or row.stale or not row.step or not row.started:
        return None
    from hostler.records.sweep.measured_rates import planned_steps  # only while something runs

    total = planned_steps(row.params)
    if total is None or row.step >= total:
        return None
    return spent(row, now) / row.step * (total - row.step)


def spent(row: Row, now: float) -> float:
    """Seconds that a run which runs has taken, those of earlier attempts too."""
    return row.earlier + max(0.0, now - (row.began or row.started or now))


def _watch_lines(
    look: Callable[[], Sequence[Row]], goes_on: Callable[[Sequence[Row]], bool], every: float
) -> None:
    said: dict[str, tuple[str, ...]] = {}
    while True:
        rows = look()
        for row in rows:
            news = _news(row)
            if said.get(row.id) != news:
                said[row.id] = news
                click.echo("  ".join(filter(None, news)))
        if not goes_on(rows):
            return
        time.sleep(every)


def _most_telling(found: Sequence[Row], room: int) -> Sequence[Row]:
    """The rows that fit on the screen: running ones first, then waiting ones, then the newest ends."""
    if len(found) <= room:
        return found
    order = {RUNNING: 0, "failed": 1, QUEUED: 2}
    telling = sorted(found, key=lambda row: (order.get(row.state, 3), -(row.started or 0)))[: max(1, room)]
    wanted = {row.id for row in telling}
    return [row for row in found if row.id in wanted]


def _open(found: Sequence[Row]) -> bool:
    return any(row.state in (QUEUED, RUNNING) for row in found)


def _news(row: Row) -> tuple[str, ...]:
    """A run on a line of its own, where no table can be redrawn; time alone is no news."""
    step = "" if row.step is None else str(row.step)
    return (
        row.name,
        state_text(row),
        step,
        output.metrics_text(row),
        row.host or "",
        output.params_text(row),
    )


def _times(row: Row, now: float) -> Times:
    if row.seconds is not None:
        return Times(row.seconds)
    if not row.started or row.state != RUNNING:
        return Times()
    return Times(spent(row, now), eta(row, now))


def drawn(found: Sequence[Row], room: int, *, sort: str = "", columns: str = "") -> list[str]:
    """Tables of runs, one for each sweep of several, as wide as the room; what did not fit is named."""
    now, lines = time.time(), list[str]()
    for block in run_columns.blocks(found):
        if sort:
            block = run_columns.ordered(block, [_times(row, now) for row in block], sort)
        states = [state_text(row) for row in block]
        wanted = run_columns.chosen(block, states, [_times(row, now) for row in block], columns)
        kept, out = run_columns.fitting(wanted, room)
        lines += ["", *_table(block, kept, room)] if lines else _table(block, kept, room)
        if out:
            lines += left_out(out, room)
    return lines


def on_screen(
    found: Sequence[Row], size: os.terminal_size, *, sort: str = "", columns: str = ""
) -> list[str]:
    """The tables with as many runs as one screen holds: what scrolled away could not be drawn anew."""
    room = size.lines - 3 * max(1, len(list(run_columns.blocks(found))))
    lines = drawn(_most_telling(found, room), size.columns, sort=sort, columns=columns)
    over = len(lines) - (size.lines - 1)  # names of columns that are left out may need several lines
    if over <= 0:
        return lines
    return drawn(_most_telling(found, room - over), size.columns, sort=sort, columns=columns)


def left_out(titles: Sequence[str], room: int) -> list[str]:
    """The columns that a narrow terminal has no room for, by name."""
    line = f"  left out at {room} columns: {', '.join(titles)} (--columns chooses)"
    return screen.wrapped(line, room, "    ")


def _table(rows: Sequence[Row], columns: Sequence[Column], room: int) -> list[str]:
    starred = run_columns.best_of(rows)

    def painted(row: int, column: int, text: str) -> str:
        if row < 0:
            return paint(text, bold=True)
        if columns[column].title == run_columns.NAME and rows[row].id in starred:
            return paint(text, bold=True)
        if columns[column].cells[row] == "NaN":
            return paint(text, "red")
        if columns[column].title != run_columns.STATE:
            return text
        if _is_parked(rows[row]):
            return paint(text, "bright_black")
        return paint(text, "red" if rows[row].stale else COLOURS.get(rows[row].counted, "white"))

    least = [FIRM.get(column.title, width(column.head)) for column in columns]
    cells = [list(line) for line in zip(*(column.aligned for column in columns), strict=True)]
    names = [n for n, column in enumerate(columns) if column.title == run_columns.NAME]
    return screen.lines([column.head for column in columns], cells, least, room, painted, names)
