"""Does one thing to each of the runs that were named, and says what became of every one.

A name is refused if it means nothing here, or one run for which the thing cannot be done. In a sweep,
runs that the thing is not for are passed over. Exit 1 only if a name was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import click

from hostler.cli.terminal import named_rows, output
from hostler.errors import MissingError, UsageError
from hostler.frozen import dataclass
from hostler.records.rows import Row
from hostler.records.run import control, resolve
from hostler.records.sweep import sweeps
from hostler.spec.units import counted
from hostler.store import Store

BY_A_PERSON = "person"  # what kind of halt it is
DID, NEEDLESS, REFUSED = "did", "needless", "refused"
ONE_BY_ONE = 10  # more runs than this are counted, not listed
MOST = 10_000  # of a sweep of more runs those that nobody has had are not acted on one by one


@dataclass(frozen=True)
class Result:
    name: str
    said: str
    kind: str = DID
    row: Row | None = None
    alone: bool = True  # named by itself, not as one of a sweep

    @property
    def refused(self) -> bool:
        return self.kind == REFUSED and self.alone


def act(store: Store, names: Iterable[str], do: Callable[[Row], Result]) -> list[Result]:
    """Do it to every run these names mean, each once; names that mean nothing are refused."""
    results: list[Result] = []
    seen: set[str] = set()
    for name in names:
        try:
            meant = named_rows.rows_named(store, [name], trash=True, most=MOST)
            rows = [row for row in meant if row.id not in seen]
        except (MissingError, UsageError) as error:
            results.append(Result(name, str(error), REFUSED))
            continue
        seen |= {row.id for row in rows}
        results += [replace(do(row), alone=len(rows) == 1) for row in rows]
    return results


def hold(store: Store, names: Iterable[str], why: str) -> None:
    """Sweeps too large to end what waits one by one are halted: nothing more of them is taken."""
    for name in _large(store, names):
        sweeps.halt(store, name, why, kind=BY_A_PERSON)
        click.echo(f"{name} is halted: no more of its runs are started; hostler resume {name} continues it")


def let_go(store: Store, names: Iterable[str]) -> list[str]:
    """Lift what `hold` halted; the sweeps that were."""
    held = [n for n in _large(store, names) if (sweeps.halted(store, n) or {}).get("kind") == BY_A_PERSON]
    for name in held:
        sweeps.lift(store, name)
        click.echo(f"{name}: no longer halted")
    return held


def _large(store: Store, names: Iterable[str]) -> list[str]:
    found = []
    for name in names:
        try:
            job, index = resolve.find(store, name)
        except (MissingError, UsageError):  # said when it is acted on
            continue
        if index is None and job.count > MOST:
            found.append(job.name)
    return found


def result(row: Row, said: str) -> Result:
    """The answer of `records.control` for a run."""
    kind = DID if said in control.DONE_SO else NEEDLESS if said.startswith("already") else REFUSED
    return Result(row.name, said, kind, row)


def in_trash(row: Row) -> Result:
    return Result(row.name, f"in the trash (hostler rm --restore {row.name})", REFUSED, row)


def report(store: Store, results: Sequence[Result], *, as_json: bool) -> int:
    """Say what became of each; the exit code."""
    for one in results:
        if one.row is None:
            click.echo(f"hostler: {one.said}", err=True)
    about = [one for one in results if one.row is not None]
    if as_json:
        _print_json(store, about)
    elif len(about) > ONE_BY_ONE:
        for (text, _), n in Counter((one.said, one.kind) for one in about).items():
            click.echo(f"{counted(n, 'run')}: {text}")
    else:
        for one in about:
            click.echo(f"{one.name}: {one.said}", err=one.refused)
    return int(any(one.refused for one in results))


def _print_json(store: Store, about: Sequence[Result]) -> None:
    now = {row.id: row for row in named_rows.rows_of(store, [one.row.key for one in about if one.row])}
    output.print_json(
        [
            {**output.row_json(now.get(one.row.id, one.row)), "said": one.said, "outcome": one.kind}
            for one in about
            if one.row
        ]
    )
