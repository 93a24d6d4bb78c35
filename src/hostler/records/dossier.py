"""Everything the store knows of one run, read once: what `show` prints and `diff` compares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostler.records import checkpoints, layout, metrics, sweeps
from hostler.records.body import Record, decode
from hostler.records.control import entries_of
from hostler.records.history import Event, Try, events, tries
from hostler.records.log import RunKey
from hostler.records.rows import Row, rows
from hostler.records.state import fold
from hostler.spec.job import Job
from hostler.store import NotFound, Store


@dataclass(frozen=True)
class Saved:
    """One committed checkpoint: its name (attempt-step), files and bytes."""

    name: str
    files: int
    size: int
    finished: bool


@dataclass(frozen=True)
class Dossier:
    row: Row
    job: Job  # with the code of the newest reopen
    tries: list[Try]
    events: list[Event]
    metrics: dict[str, dict[str, float]]  # last, min, max, and the step of the last
    checkpoints: list[Saved]  # newest first
    outputs: list[Record]  # name, size, sha256
    environment: Record | None  # of the newest attempt that wrote one
    result: Record | None  # what finish() was given


def read(store: Store, key: RunKey) -> Dossier:
    """What is known of a run that exists."""
    entries = entries_of(store, key)
    state = fold(entries)
    row = next(row for row in rows(store, [key.sweep], trash=True) if row.id == key.run)
    numbers = [attempt.number for attempt in tries(entries)][::-1]
    outputs = _newest(store, (layout.output_commit(key.run, n) for n in numbers))
    return Dossier(
        row=row,
        job=sweeps.with_source(sweeps.load(store, key.sweep), state),
        tries=tries(entries),
        events=events(entries),
        metrics=_metrics(store, key, state.attempt) or (state.end or {}).get("metrics") or {},
        checkpoints=_saved(store, key.run),
        outputs=(outputs or {}).get("files", []),
        environment=_newest(store, (layout.environment(key.run, n) for n in numbers)),
        result=(state.end or {}).get("result"),
    )


def _metrics(store: Store, key: RunKey, attempt: int) -> dict[str, dict[str, float]]:
    return metrics.summary(metrics.read(store, key.run, attempt))


def _saved(store: Store, run: str) -> list[Saved]:
    found = []
    for place in checkpoints.committed(store, run):
        try:
            one = checkpoints.read(store, run, place)
        except NotFound:  # retention was faster
            continue
        files = one.record.get("files", [])
        found.append(Saved(place.name, len(files), sum(f.get("size", 0) for f in files), one.finished))
    return found


def _newest(store: Store, keys: Iterable[str]) -> Record | None:
    for key in keys:
        try:
            return decode(store.get(key).data, key)
        except NotFound:
            continue
    return None
