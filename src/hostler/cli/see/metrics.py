"""`hostler metrics`: reads metrics from the stored output of runs that have ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from hostler.cli import here
from hostler.cli.terminal import output
from hostler.cli.terminal.output import Say
from hostler.errors import DamagedError, MissingError, NewerFormatError, UsageError
from hostler.records.rows import Row, rows
from hostler.records.run import resolve
from hostler.records.run.log import RunKey
from hostler.records.run.state import UNREADABLE
from hostler.records.series import reread
from hostler.records.series.reread import OPEN, SILENT, Reread
from hostler.spec.job import MetricSource, by_pattern
from hostler.spec.units import counted
from hostler.store import Store

SHOWN = 5  # lines of a log that a pattern did not match
EXAMPLE = "--pattern 'loss=(?P<loss>[0-9.]+)'"


def command(names: tuple[str, ...], pattern: str | None, store_url: str | None, as_json: bool) -> int:
    """Read metrics from the stored output of runs that have ended."""
    source = _source(pattern)
    store = here.open_here(store_url)
    keys = list(dict.fromkeys(key for name in names for key in resolve.runs(store, name)))
    wanted = {key.run for key in keys}
    say = output.saying()
    there = rows(store, list(dict.fromkeys(key.sweep for key in keys)), touched=True, say=say)
    chosen = sorted((row for row in there if row.id in wanted), key=lambda row: bool(row.copy_of))
    rereads = _reread(store, chosen, source, say)
    chosen = [row for row in chosen if row.id in rereads]
    _check(store, " ".join(names), chosen, rereads, pattern)
    if as_json:
        output.print_json([_json(row, rereads[row.id]) for row in chosen])
    else:
        click.echo("\n".join(_lines(rereads)))
    return 0


def _reread(store: Store, chosen: Sequence[Row], source: MetricSource, say: Say) -> dict[str, Reread]:
    """Each run's output, read again. A run whose records are damaged is left out, and named."""
    rereads: dict[str, Reread] = {}
    for row in chosen:
        if row.state == UNREADABLE:  # named already
            continue
        try:
            rereads[row.id] = reread.reread(store, RunKey(row.sweep, row.id), source)
        except (DamagedError, NewerFormatError) as error:
            say(f"{row.name} is left out: {error}")
    if chosen and not rereads:
        raise MissingError("none of these runs can be read", hint="hostler show NAME says what is wrong")
    return rereads


def _source(pattern: str | None) -> MetricSource:
    if pattern is None:
        return MetricSource()
    try:
        return by_pattern(pattern)
    except ValueError as error:
        named = "is not a regular" in str(error)
        hint = "put it in quotes, and a \\ before a character that is meant literally" if named else EXAMPLE
        raise UsageError(str(error), hint=hint) from None


def _check(store: Store, name: str, chosen: list[Row], found: dict[str, Reread], pattern: str | None) -> None:
    """Nothing to read, or nothing in it, is an error that says what to do."""
    skipped = Counter(one.skipped for one in found.values())
    if skipped[OPEN] == len(found):
        raise MissingError(f"no run of {name} has ended yet", hint=f"hostler status {name}")
    if skipped[OPEN] + skipped[SILENT] == len(found):
        raise MissingError(
            f"the runs of {name} have no stored output to read",
            hint="hostler run and hostler sweep keep what a script prints; by hand, log with run.log",
        )
    if any(one.points or one.own for one in found.values()):
        return
    row = next(row for row in chosen if not found[row.id].skipped)
    lines = reread.sample(store, row.copy_of or row.id, SHOWN)
    if lines:
        click.echo(f"lines of {row.name}:", err=True)
    for line in lines:
        click.echo(f"  {line}", err=True)
    if pattern is None:
        fitting = reread.fitting_pattern(store, [row.copy_of or row.id])
        example = f"--pattern '{fitting[1]}'" if fitting else EXAMPLE
        raise MissingError(
            f"no line of {name} has the form of a tool that hostler knows",
            hint=f"hostler metrics {name} {example}",
        )
    raise MissingError(
        f"{pattern!r} matches no line of {name}", hint="try it on a line: hostler logs NAME --grep PATTERN"
    )


def _lines(found: dict[str, Reread]) -> list[str]:
    new = [one for one in found.values() if one.changed]
    same = [one for one in found.values() if one.points and not one.changed]
    own = sorted({name for one in found.values() for name in one.own})
    skipped = Counter(one.skipped for one in found.values())
    lines = []
    if new:
        names = dict.fromkeys(name for one in new for name in one.names)
        lines.append(f"{_points(new)} of {', '.join(names)}")
    if same:
        lines.append(f"{_points(same)} were there already")
    if own:
        lines.append(f"{', '.join(own)}: logged by the runs themselves, left as they are")
    for why in (OPEN, SILENT):
        if count := skipped[why]:
            lines.append(f"left out: {counted(count, 'run')} ({why})")
    return lines


def _points(some: list[Reread]) -> str:
    count = sum(one.points for one in some)
    return f"{counted(count, 'point')} in {counted(len(some), 'run')}"


def _json(row: Row, one: Reread) -> dict[str, object]:
    return {
        "run": row.id,
        "name": row.name,
        "points": one.points,
        "metrics": list(one.names),
        "own": list(one.own),
        "changed": one.changed,
        "skipped": one.skipped or None,
    }
