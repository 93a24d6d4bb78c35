"""Runs that have finished already in another sweep: same command, same parameters, same repeat.

Whether the result is taken over is the person's choice: the code may have been other code. What is taken
over is the end; checkpoints and outputs stay with the run that made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hostler.errors import HostlerError
from hostler.fleet.edit import Edit
from hostler.frozen import dataclass
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.attempt import copy_end
from hostler.records.run.entries import copied_end
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, mark
from hostler.spec.states import DONE
from hostler.store import Store

MOST = 10_000  # more new runs than this are not looked for elsewhere


@dataclass(frozen=True)
class Twin:
    index: int  # of the new run
    row: Row  # the finished run of another sweep


def find(store: Store, edit: Edit) -> tuple[Twin, ...]:
    """New runs of an edit that have finished elsewhere."""
    if not 0 < len(edit.new) <= MOST:
        return ()
    wanted = {_mark(edit.job, index): index for index in edit.new}
    twins: dict[int, Twin] = {}
    for name in sweeps.names(store):
        if name != edit.job.name:
            for twin in _among(store, name, edit.job, wanted):
                twins.setdefault(twin.index, twin)
    return tuple(twins[index] for index in sorted(twins))


def take_over(store: Store, job: Job, twins: Sequence[Twin]) -> int:
    """Give new runs the ends of their twins, where nobody was faster. Returns how many."""
    return sum(map(partial(_take_over, store, job), twins))


def _take_over(store: Store, job: Job, twin: Twin) -> bool:
    end = control.state_of(store, twin.row.key).end
    if end is None:
        return False
    key = RunKey(job.name, job.run_id(twin.index))
    own = RunLog(store, key)
    if not own.append(copied_end(end, twin.row.copy_of or twin.row.id)):
        return False
    copy_end(store, key, own.head, own.entries[-1])
    return True


def _among(store: Store, name: str, job: Job, wanted: dict[str, int]) -> list[Twin]:
    try:
        other = sweeps.load(store, name)
    except HostlerError:  # being deleted, or newer than this hostler: nothing to take over
        return []
    if (other.style, other.cwd) != (job.style, job.cwd) or other.count > 100 * MOST:
        return []
    same = {i: wanted[m] for i in other.indices() if (m := _mark(other, i)) in wanted}
    if not same:
        return []
    done = [row for row in rows(store, [name], touched=True) if row.state == DONE and row.index in same]
    return [Twin(same[row.index], row) for row in done]


def _mark(job: Job, index: int) -> str:
    """A run's identity whatever its sweep is called."""
    return mark("", job.command_of(index), job.params(index), job.repeat(index))
