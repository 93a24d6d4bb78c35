"""Summary of a sweep in one line: runs in each state, time left, the best run so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hostler.frozen import dataclass
from hostler.records.rows import Row, SweepRuns
from hostler.records.run.state import LOST, UNREADABLE
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Objective
from hostler.spec.states import ALL, COUNTED, DONE, DOUBTFUL, FAILED, QUEUED, RUNNING
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.records.launch.costs import SweepCost
    from hostler.records.series.ended_table import EndedTable


@dataclass(frozen=True)
class Summary:
    name: str
    method: str
    runs: int
    counts: dict[str, int]  # state → runs, in the order of states; lost and unreadable ones last
    silent: int = 0  # of those that are running: runs whose holder has not beaten for a lease
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

    @property
    def states(self) -> str:
        """`3 running, 1 lost?, 4 done`: a run whose holder is silent is not called running."""
        heard = {**self.counts, RUNNING: self.counts.get(RUNNING, 0) - self.silent, DOUBTFUL: self.silent}
        order = (*ALL[: ALL.index(RUNNING) + 1], DOUBTFUL, *ALL[ALL.index(RUNNING) + 1 :], LOST, UNREADABLE)
        return ", ".join(f"{heard[state]} {state}" for state in order if heard.get(state))


@dataclass(frozen=True)
class EndedTally:
    """Ended runs, none of them in the trash, that are counted and not shown."""

    indices: Collection[int] = ()
    states: Counter[str] = field(default_factory=Counter)
    seconds: Sequence[float] = ()  # that those took which are done, and are not copies
    codes: Counter[str] = field(default_factory=Counter)  # mark of the code → runs it finished
    logged: Collection[str] = ()  # metrics that those have logged which are done


def of_sweep(
    store: Store, name: str, say: Callable[[str], None] | None = None, job: Job | None = None
) -> Summary:
    """Summarize a sweep: started runs are read, the others are only counted. `job`: its spec, where it has
    been read already."""
    job = job or sweeps.load(store, name)
    runs = SweepRuns(store, job, say=say)
    table = runs.ended()
    rows = runs.others(table)
    if table:
        rows += [runs.ended_row(table, run) for run in table.leading(1)]
    rest = _tally(table, {row.id for row in rows}) if table else _NONE
    return summarize(job, rows, sweeps.why_halted(store, name, say), rest)


def _tally(table: EndedTable, but: Collection[str]) -> EndedTally:
    counted = {run: facts for run, facts in table.runs.items() if run not in but}
    done = [one for one in counted.values() if one.state == DONE]
    return EndedTally(
        indices=[int(run[:7]) for run in counted],
        states=Counter(one.state for one in counted.values()),
        seconds=[one.seconds for one in done if one.seconds and not one.copy_of],
        codes=Counter(one.code or "" for one in done),
        logged=table.logged if done else (),
    )


_NONE = EndedTally()


def summarize(job: Job, touched: Sequence[Row], halted: str = "", rest: EndedTally = _NONE) -> Summary:
    """Pure. `touched` are all runs that somebody has had, those in the trash too, but for the `rest`, of
    which none is better than the best of them."""
    started = {*rest.indices, *(row.index for row in touched)}
    again = (
        sum(i in job.dropped for i in started) if job.dropped else 0
    )  # were started before they were dropped
    waiting = job.count - len(job.dropped) - (len(started) - again)
    ours = [row for row in touched if not row.trashed]
    totals = Counter(row.counted for row in ours) + rest.states
    totals[QUEUED] += waiting
    times = [row.seconds for row in ours if row.state == DONE and row.seconds and not row.copy_of]
    times += rest.seconds
    usual = _median(times) if times else None
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
        silent=sum(row.silent for row in ours),
        unchosen=job.unchosen,
        seconds=usual,
        best=best[0][1] if best else None,
        value=best[0][0] if best else None,
        metric=job.metric,
        budget=job.budget.cost,
        halted=halted,
        unlogged=_unlogged(job, ours, rest),
        codes=dict(Counter(row.code for row in ours if row.state == DONE) + rest.codes),
    )


def _median(times: list[float]) -> float:
    """As `statistics` has it, whose import takes longer than all of this."""
    ordered, half = sorted(times), len(times) // 2
    return ordered[half] if len(times) % 2 else (ordered[half - 1] + ordered[half]) / 2


def ranked(job: Job, found: Sequence[Row], by: Objective | None = None) -> list[tuple[float, Row]]:
    """(value, run) of runs that ended well, the best first; of equal ones the first. NaN and infinities count
    for nothing. By the sweep's first metric, if the runs were not read `by` another."""
    by = by or job.ranked_by
    if by is None:
        return []
    ended = [row for row in found if row.state in COUNTED]
    valued = [(row.judged.value, row) for row in ended if row.judged and row.judged.counts]
    sign = -1 if by.goal == "max" else 1
    return sorted(valued, key=lambda pair: (sign * pair[0], pair[1].index))


def unfinished(found: Summary) -> tuple[str, str]:
    """Why a sweep has no finished run, in words, and the command that tells more. Pure."""
    name, counts = found.name, found.counts
    text = ", ".join(f"{n} {state}" for state, n in counts.items())
    if found.runs and counts.get(FAILED) == found.runs:
        all_runs = f"all {found.runs} runs" if found.runs > 1 else "the only run"
        return f"{all_runs} of {name} failed", f"hostler errors {name}"
    if counts.get(QUEUED) or counts.get(RUNNING) or not text:
        return f"no run of {name} has finished yet" + f" ({text})" * bool(text), f"hostler status {name}"
    return f"no run of {name} has succeeded ({text})", f"hostler status {name}"


def logged(found: Sequence[Row]) -> list[str]:
    """The metrics that these runs have logged of their own."""
    return sorted({name for row in found for name in row.metrics if not name.startswith("system/")})


def _eta(waiting: int, usual: float | None, running: Sequence[Row]) -> float | None:
    if usual is None or not running:
        return None
    return usual * (waiting + len(running) / 2) / len(running)


def _unlogged(job: Job, found: Sequence[Row], rest: EndedTally) -> str:
    done = [row for row in found if row.state == DONE]
    if not done and not rest.states[DONE]:
        return ""
    names = [objective.name for objective in job.objectives] or ([job.metric] if job.metric else [])
    remaining = [name for name in names if name not in rest.logged]
    absent = [name for name in remaining if not any(name in row.metrics for row in done)]
    if not absent:
        return ""
    there = sorted({*logged(done), *rest.logged})
    return f"no finished run has logged {', '.join(absent)}; " + (
        f"logged: {', '.join(there)}" if there else "none has logged anything"
    )
