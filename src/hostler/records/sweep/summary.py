"""Summary of a sweep in one line: runs in each state, time left, the best run so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from statistics import median
from typing import TYPE_CHECKING

from hostler.records.rows import Row, rows
from hostler.records.run.state import LOST, UNREADABLE
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Objective
from hostler.spec.states import ALL, DONE, PRUNED, QUEUED, RUNNING
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.records.launch.costs import SweepCost


@dataclass(frozen=True)
class Summary:
    name: str
    method: str
    runs: int
    counts: dict[str, int]  # state → runs, in the order of states; lost and unreadable ones last
    unchosen: int = 0  # runs that a search may still add
    eta: float | None = None  # seconds, if what runs now goes on so
    seconds: float | None = None  # what a run takes
    best: Row | None = None
    value: float | None = None  # of the best
    metric: str | None = None
    halted: str = ""  # why nothing of it is taken
    unlogged: str = ""  # what is wrong with its metric, as finished runs show
    budget: float | None = None  # money it may cost
    cost: SweepCost | None = None  # where a price is known, or a budget
    codes: dict[str, int] = field(default_factory=dict)  # mark of the code → runs it finished


def of_sweep(store: Store, name: str, say: Callable[[str], None] | None = None) -> Summary:
    """Summarize a sweep: started runs are read, the others are only counted."""
    job = sweeps.load(store, name)
    found = rows(store, [name], touched=True, trash=True, say=say)
    return summarize(job, found, sweeps.why_halted(store, name, say))


def summarize(job: Job, touched: Sequence[Row], halted: str = "") -> Summary:
    """Pure. `touched` are all runs that somebody has had, those in the trash too."""
    started = {row.index for row in touched}
    waiting = job.count - len(job.dropped) - sum(i not in job.dropped for i in started)
    ours = [row for row in touched if not row.trashed]
    totals = Counter(row.counted for row in ours)
    totals[QUEUED] += waiting
    times = [row.seconds for row in ours if row.state == DONE and row.seconds and not row.copy_of]
    usual = median(times) if times else None
    best = ranked(job, ours)[:1]
    return Summary(
        name=job.name,
        method=job.method,
        runs=sum(totals.values()),
        counts={state: totals[state] for state in (*ALL, LOST, UNREADABLE) if totals[state]},
        eta=_eta(
            totals[QUEUED] + job.unchosen,
            usual,
            [row for row in ours if row.state == RUNNING and not row.stale],
        ),
        unchosen=job.unchosen,
        seconds=usual,
        best=best[0][1] if best else None,
        value=best[0][0] if best else None,
        metric=job.metric,
        budget=job.budget.cost,
        halted=halted,
        unlogged=_unlogged(job, ours),
        codes=dict(Counter(row.code for row in ours if row.state == DONE)),
    )


def ranked(job: Job, found: Sequence[Row], by: Objective | None = None) -> list[tuple[float, Row]]:
    """(value, run) of runs that ended well, the best first; of equal ones the first. NaN and infinities count
    for nothing. By the sweep's first metric, if no other is named."""
    if by is None and job.metric is None:
        return []
    by = by or Objective(str(job.metric), job.goal)
    ended = [row for row in found if row.state in (DONE, PRUNED)]
    valued = [(row.metrics[by.name], row) for row in ended if isfinite(row.metrics.get(by.name, nan))]
    sign = -1 if by.goal == "max" else 1
    return sorted(valued, key=lambda pair: (sign * pair[0], pair[1].index))


def logged(found: Sequence[Row]) -> list[str]:
    """The metrics that these runs have logged of their own."""
    return sorted({name for row in found for name in row.metrics if not name.startswith("system/")})


def _eta(waiting: int, usual: float | None, running: Sequence[Row]) -> float | None:
    if usual is None or not running:
        return None
    return usual * (waiting + len(running) / 2) / len(running)


def _unlogged(job: Job, found: Sequence[Row]) -> str:
    done = [row for row in found if row.state == DONE]
    names = [one.name for one in job.objectives] or ([job.metric] if job.metric else [])
    absent = [name for name in names if done and not any(name in row.metrics for row in done)]
    if not absent:
        return ""
    there = logged(done)
    return f"no finished run has logged {', '.join(absent)}; " + (
        f"logged: {', '.join(there)}" if there else "none has logged anything"
    )
