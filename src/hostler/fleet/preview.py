"""Previews a submission before anything is written: how many runs, which are new, done, running.

Reads the store and this machine's files, writes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from statistics import median

from hostler.errors import UsageError
from hostler.fleet import again, edit, equal_runs, sweep
from hostler.fleet.edit import Edit
from hostler.fleet.equal_runs import Twin
from hostler.frozen import dataclass
from hostler.records.rows import Row, rows
from hostler.records.sweep import measured_rates, sweeps
from hostler.spec import space
from hostler.spec.job import Job
from hostler.spec.project import Fleet
from hostler.spec.states import DONE, QUEUED, RUNNING
from hostler.store import Store


@dataclass(frozen=True)
class Outlook:
    edit: Edit
    there: bool  # the sweep is in the store already
    states: dict[str, int] = field(default_factory=dict)  # of the file's runs that are in the store
    other_code: tuple[str, ...] = ()  # finished runs whose code is not today's, by name
    again: tuple[str, ...] = ()  # neither done nor live: what `-r` submits again, by name
    left: dict[str, int] = field(default_factory=dict)  # states of runs that are in the file no longer
    twins: tuple[Twin, ...] = ()  # new runs that have finished in another sweep
    seconds: float | None = None  # what a run takes, as far as runs of this sweep have shown
    failed: int | None = None  # of a sweep that makes way: its failed runs, if the others hold nothing
    replaced: int = 0  # runs of a sweep in which nothing succeeded, and which makes way for other runs

    def on(self, store: Store, fleet: Fleet) -> Outlook:
        """The same for a fleet: what a scout measured there stands over what runs took elsewhere."""
        measured = measured_rates.read(store, self.job.name, fleet.name)
        seconds = measured.seconds if measured else None
        return self if seconds is None else replace(self, seconds=seconds)

    @property
    def job(self) -> Job:
        return self.edit.job

    @property
    def runs(self) -> int:
        """How many runs the file has; those a search may make, where it learns."""
        return (self.job.budget.runs or 0) if self.job.search else self.edit.runs

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the space for a person."""
        if self.job.search:
            return space.from_json(self.job.search).notes
        return self.job.rounds[-1].space.notes if self.job.rounds else ()

    @property
    def open(self) -> int:
        """Runs that are still to be carried out."""
        live = self.states.get(QUEUED, 0) + self.states.get(RUNNING, 0)
        return live + (len(self.edit.new) or self.runs - sum(self.states.values()))


def look(store: Store, job: Job, code: str, *, anew: bool = False) -> Outlook:
    """`code` is the mark of today's code. `anew`: what is there makes way for it."""
    found = sweep.current(store, job)
    if found is None:
        change = sweep.edited(store, None, job)
        return Outlook(change, False, twins=equal_runs.find(store, change))
    touched = rows(store, [job.name], touched=True, trash=True)
    failed = again.failed_only(touched)
    if anew:
        return Outlook(_instead(store, found[0], job), True, failed=failed)
    try:
        change = sweep.edited(store, found[0], job)
    except UsageError:
        cut_off = failed == 0 and any(row.trashed for row in touched) and sweeps.halted(store, job.name)
        if not failed and not cut_off:  # cut off: an earlier submission in its place
            raise
        return Outlook(
            _instead(store, found[0], job), True, failed=failed, replaced=_outside_trash(found[0], touched)
        )
    ours = [row for row in touched if row.index in change.kept and not row.trashed]
    states = Counter(row.state for row in ours)
    states[QUEUED] += len(change.kept) - len(ours)
    return Outlook(
        change,
        True,
        {state: n for state, n in states.items() if n},
        other_code=tuple(row.name for row in ours if again.is_changed(row, code)),
        again=tuple(row.name for row in ours if again.is_undone(row)),
        left=dict(Counter(row.state for row in touched if row.index in change.left)),
        twins=equal_runs.find(store, change),
        seconds=_median_seconds(touched),
    )


def _instead(store: Store, old: Job, job: Job) -> Edit:
    return edit.instead(old, job, sweep.started(store, job.name))


def _outside_trash(old: Job, touched: list[Row]) -> int:
    """Runs of a sweep that are not in the trash."""
    gone = sum(row.trashed and row.index not in old.dropped for row in touched)
    return old.count - len(old.dropped) - gone


def _median_seconds(found: list[Row]) -> float | None:
    times = [row.seconds for row in found if row.state == DONE and row.seconds and not row.copy_of]
    return median(times) if times else None
