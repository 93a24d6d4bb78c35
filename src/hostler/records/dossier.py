"""Everything the store knows of one run, read once: what `show` prints and `diff` compares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import checkpoints, defaults, layout, metrics, surroundings, sweeps, tracked
from hostler.records.body import Record, decode
from hostler.records.control import entries_of
from hostler.records.history import Event, Try, events, tries
from hostler.records.log import RunKey
from hostler.records.points import Point
from hostler.records.rows import Row, rows
from hostler.records.state import RunState, fold
from hostler.records.tracked import Tracked
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
    chosen: Record  # parameters that its script chose itself, without what are defaults
    job: Job  # with the code of the newest reopen
    tries: list[Try]
    events: list[Event]
    metrics: dict[str, dict[str, float]]  # last, min, max, and the step of the last
    checkpoints: list[Saved]  # newest first
    outputs: list[Record]  # name, size, sha256
    environment: Record | None  # of the newest attempt that wrote one
    result: Record | None  # what finish() was given
    tracked: list[Tracked]  # in tracking tools


def read(store: Store, key: RunKey) -> Dossier:
    """What is known of a run that exists."""
    entries = entries_of(store, key)
    state = fold(entries)
    row = next(row for row in rows(store, [key.sweep], trash=True) if row.id == key.run)
    job = sweeps.load(store, key.sweep)
    numbers = [attempt.number for attempt in tries(entries)][::-1]

    def ran_on(attempt: int) -> Record | None:
        return surroundings.of_attempt(store, key.run, attempt, entries)

    outputs = _newest(store, (layout.output_commit(key.run, n) for n in numbers))
    return Dossier(
        row=row,
        chosen=_chosen(store, job, row, entries),
        job=sweeps.with_source(job, state),
        tries=tries(entries),
        events=events(entries),
        metrics=_metrics(store, key, state),
        checkpoints=_saved(store, key.run),
        outputs=(outputs or {}).get("files", []),
        environment=next(filter(None, map(ran_on, numbers)), None),
        result=(state.end or {}).get("result"),
        tracked=tracked.read(store, key.run),
    )


def _chosen(store: Store, job: Job, row: Row, entries: Iterable[Record]) -> Record:
    """As its newest attempt that ended said."""
    told: Record = next((one["config"] for one in reversed([*entries]) if one.get("config")), {})
    if not told:
        return {}
    try:
        usual = defaults.at(defaults.history(store), job.command_of(row.index), row.started or 0.0)
    except (DamagedError, NewerFormatError):  # of no run: all of it is shown
        usual = {}
    return {name: value for name, value in told.items() if name not in usual or usual[name] != value}


def _metrics(store: Store, key: RunKey, state: RunState) -> dict[str, dict[str, float]]:
    """Its curves in short; the end knows what one used that was over before the first sample."""
    end = state.end or {}
    found = metrics.summary(metrics.read(store, key.run, state.attempt)) or end.get("metrics") or {}
    return {**metrics.summary([Point(end.get("step") or 0, 0.0, end.get("use") or {})]), **found}


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
