"""`hostler wait`: until runs have ended; one line per change."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence

import click

from hostler.cli import here
from hostler.cli.terminal import halt_hints, named_rows, output
from hostler.cli.terminal.follow import pause
from hostler.cli.terminal.hints import died, nobody
from hostler.cli.terminal.screen import state
from hostler.cli.terminal.table import state_text
from hostler.errors import UsageError
from hostler.fleet.pending import goes_on
from hostler.records.rows import Row, rows
from hostler.records.run import resolve
from hostler.records.run.log import RUNG
from hostler.spec.states import DONE, PAUSED, PRUNED, QUEUED, RUNNING, STOPPED
from hostler.spec.units import duration, show_duration
from hostler.store import Store
from hostler.store.registry import is_folder

LOOK = 0.3  # seconds between two looks, in the end
REST = 4  # times what a look takes, at least: one at a large sweep takes long itself
TIMED_OUT = 75


def command(
    names: tuple[str, ...], every: bool, timeout: str | None, store_url: str | None, as_json: bool
) -> int:
    """Wait until runs have ended: those named, else of the newest sweep. 0 only if all of them are done."""
    limit = _seconds(timeout)
    store = here.open_here(store_url)
    names = () if every else here.named_or_newest(store, names)
    meant = [resolve.find(store, name) for name in names]  # a name that means nothing is said now
    whole = [job.name for job, index in meant if index is None] if names else []

    say = output.saying()

    def look() -> list[Row]:
        here.deliver_left(store, say)
        return named_rows.rows_named(store, names, say=say) if names else rows(store, say=say)

    found, over = wait(store, look, limit, quiet=as_json, also=whole)
    if as_json:
        output.print_json([output.row_json(row) for row in found])
    return exit_code(store, found, limit, over, whole)


def wait(
    store: Store,
    look: Callable[[], list[Row]],
    limit: float | None,
    *,
    quiet: bool,
    also: Iterable[str] = (),
) -> tuple[list[Row], bool]:
    """Look until nothing runs or will be taken and no search wants more, or the time is up; the rows as they
    are then, and whether all is over. `also`: sweeps that may have no run yet."""
    begun = time.monotonic()
    said: dict[str, str] = {}
    warned, before = False, math.inf
    while True:
        stamp = time.monotonic()
        found = look()
        _say_changes(found, said, quiet=quiet)
        over = not goes_on(store, found, also)
        if over or (limit is not None and stamp - begun >= limit):
            return found, over
        if not warned and stamp - begun > 3:
            warned = _warn(store, found)
        now = time.monotonic()
        rest, before = until_next(now - begun, now - stamp, before, folder=is_folder(store.url)), now - stamp
        time.sleep(min(rest, max(0.0, begun + limit - time.monotonic())) if limit is not None else rest)


def until_next(waited: float, took: float, before: float, *, folder: bool) -> float:
    """Seconds until the next look. `took`: the last one; where the one `before` it was shorter, something
    else held it up, and runs may be over in a moment. Pure."""
    return max(pause(waited, LOOK, folder=folder), REST * min(took, before))


def _warn(store: Store, found: Sequence[Row]) -> bool:
    hint = nobody(store, found)
    if hint:
        click.echo(f"hostler: {hint}", err=True)
    return bool(hint)


def _say_changes(found: Sequence[Row], said: dict[str, str], *, quiet: bool) -> None:
    for row in found:
        text = state_text(row).split(" ")[0] if row.stale else state_text(row)
        if said.get(row.id) == text:
            continue
        said[row.id] = text
        if not quiet:
            click.echo(f"{row.name}  {state(text)}" + _more(row))


def _more(row: Row) -> str:
    parts = [output.metrics_text(row) if row.state == DONE else ""]
    if row.failure and row.state not in (QUEUED, RUNNING, DONE):
        parts.append(str(row.failure.get("message", "")))
    if row.seconds is not None:
        parts.append(show_duration(row.seconds))
    return "".join(f"  {part}" for part in parts if part)


def exit_code(
    store: Store, found: Sequence[Row], limit: float | None, over: bool, also: Iterable[str] = ()
) -> int:
    if not over:
        assert limit is not None
        click.echo(f"hostler: after {show_duration(limit)}: {output.counts(found)}", err=True)
        return TIMED_OUT
    stuck = halt_hints.lines(store, found, also)
    for line in stuck:
        click.echo(f"hostler: {output.counts(found)}; {line}", err=True)
    if not found and not stuck:
        click.echo("hostler: no runs to wait for", err=True)
    undone = [row for row in found if row.state not in (DONE, PRUNED) and row.paused_by != RUNG]
    if undone and not stuck:
        aside = all(row.state in (STOPPED, PAUSED, QUEUED) for row in undone)
        hint = "hostler resume continues them" if aside else "hostler errors shows why"
        if all(row.lost for row in undone):
            hint = "; ".join(died(store, undone))
        click.echo(f"hostler: {output.counts(found)}; {hint}", err=True)
    return 1 if undone or stuck else 0


def _seconds(text: str | None) -> float | None:
    try:
        return duration(text) if text is not None else None
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
