"""Rows of runs that a person named, read from the store."""

from __future__ import annotations

from collections.abc import Iterable

from hostler.cli.terminal import output
from hostler.records.rows import Row, rows
from hostler.records.run import resolve
from hostler.records.run.log import RunKey
from hostler.store import Store


def print_rows(store: Store, keys: Iterable[RunKey]) -> None:
    output.print_json([output.row_json(row) for row in rows_of(store, keys)])


def rows_of(store: Store, keys: Iterable[RunKey], say: output.Say | None = None) -> list[Row]:
    wanted = {key.run: key.sweep for key in keys}
    found = rows(store, dict.fromkeys(wanted.values()), trash=True, say=say or output.saying())
    return [row for row in found if row.id in wanted]


def rows_named(
    store: Store,
    names: Iterable[str],
    *,
    trash: bool = False,
    most: int | None = None,
    say: output.Say | None = None,
) -> list[Row]:
    """Runs that these words mean; of a sweep, those in the trash only if asked for, and of one with more than
    `most` runs only those that somebody has had. `say`: as of `rows`; a line for people, if none is given."""
    found: dict[str, Row] = {}
    say = say or output.saying()
    for name in names:
        job, index = resolve.find(store, name)
        if index is None and job.count != 1:
            touched = most is not None and job.count > most
            meant = rows(store, [job.name], trash=trash, touched=touched, say=say)
        else:
            meant = rows_of(store, [RunKey(job.name, job.run_id(index or 0))], say)
        found |= {row.id: row for row in meant}
    return list(found.values())
