"""`hostler errors`: what failed, grouped: the same error in a hundred runs is one paragraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import click

from hostler.cli import here, output
from hostler.cli.paint import paint, title
from hostler.records import control
from hostler.records.body import Record
from hostler.records.history import Try, tries
from hostler.records.rows import Row, rows
from hostler.records.state import DONE, ENDED
from hostler.store import Store

SHORT = 6  # lines of a traceback without -v
RUNS = 8  # names of runs without -v


@dataclass(frozen=True)
class Failed:
    """One attempt that failed."""

    run: str
    state: str  # the run's, now
    attempt: int
    host: str
    signature: str
    failure: Record


@dataclass(frozen=True)
class Group:
    """The same error, wherever it came."""

    kind: str
    message: str
    count: int  # attempts
    runs: tuple[str, ...]
    hosts: dict[str, int]
    advice: str
    traceback: str
    signature: str


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--all", "everything", is_flag=True, help="Also errors of attempts that were tried again.")
@click.option("-v", "--verbose", is_flag=True, help="Whole tracebacks, and all runs by name.")
@here.store_option
@here.json_option
def command(
    names: tuple[str, ...], everything: bool, verbose: bool, store_url: str | None, as_json: bool
) -> int:
    """What failed, grouped by kind and place, with a traceback of each.

    Without --all only errors that stand: of runs that failed, or that wait for another try.
    """
    store = here.open_here(store_url)
    found = groups(list(_failed(store, _rows(store, names), everything=everything)))
    if as_json:
        output.print_json([asdict(group) for group in found])
    elif not found:
        click.echo("no errors" + ("" if everything else "; --all also shows those of attempts tried again"))
    else:
        click.echo("\n\n".join("\n".join(_lines(group, verbose=verbose)) for group in found))
    return 0


def groups(failed: Sequence[Failed]) -> list[Group]:
    """Most frequent first; the newest of each speaks for it. Pure."""
    alike: dict[tuple[str, str], list[Failed]] = {}
    for one in failed:
        mark = one.signature or str(one.failure.get("message", ""))
        alike.setdefault((str(one.failure["kind"]), mark), []).append(one)
    return sorted(map(_group, alike.values()), key=lambda group: -group.count)


def _group(alike: list[Failed]) -> Group:
    last = alike[-1]
    return Group(
        kind=str(last.failure["kind"]),
        message=str(last.failure.get("message", "")),
        count=len(alike),
        runs=tuple(dict.fromkeys(one.run for one in alike)),
        hosts=dict(Counter(one.host for one in alike if one.host)),
        advice=output.advice(last.failure, last.run),
        traceback=str(last.failure.get("traceback") or ""),
        signature=last.signature,
    )


def _rows(store: Store, names: tuple[str, ...]) -> list[Row]:
    if not names:
        return rows(store)
    return output.rows_named(store, names)


def _failed(store: Store, found: Iterable[Row], *, everything: bool) -> Iterator[Failed]:
    for row in found:
        if row.failure is None and (not everything or (row.state in ENDED and row.attempt <= 1)):
            continue
        if row.state == DONE and not everything:
            continue
        entries = control.entries_of(store, row.key)
        failing = [one for one in tries(entries) if one.failure]
        if not failing and row.failure:  # ended by another than the holder: lost too often
            failing = [Try(0, host=row.host or "", failure=row.failure)]
        for one in failing if everything else failing[-1:]:
            yield Failed(row.name, row.state, one.number, one.host, one.signature, one.failure or {})


def _lines(group: Group, *, verbose: bool) -> Iterator[str]:
    count = f"{group.count} × " if group.count > 1 else ""
    yield f"{title(count + paint(group.kind, 'red'))}  {group.message}"
    shown = group.runs if verbose else group.runs[:RUNS]
    more = len(group.runs) - len(shown)
    yield f"  runs   {', '.join(shown)}" + (f" and {more} more (-v shows all)" if more else "")
    if group.hosts:
        yield f"  hosts  {', '.join(f'{h} ({n})' if n > 1 else h for h, n in group.hosts.items())}"
    lines = group.traceback.splitlines()
    if len(lines) > SHORT and not verbose:
        yield f"  | … {len(lines) - SHORT} lines more with -v"
        lines = lines[-SHORT:]
    yield from (f"  | {line}" for line in lines)
    if group.advice:
        yield f"  → {group.advice}"
