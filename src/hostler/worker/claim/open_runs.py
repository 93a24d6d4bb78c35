"""Open runs, sorted by who may take them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from hostler.records.run.state import RunState
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.spec.job import Job, Resources
from hostler.spec.states import PAUSED, QUEUED, RUNNING
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.session_watch import Sessions

Fits = Callable[[Job], bool]  # whether one more run of this sweep fits now
CanEver = Callable[[Resources], bool]
Open = tuple[Queue, OpenRun]


@dataclass
class SortedRuns:
    free: list[Open] = field(default_factory=list)
    unfit: int = 0  # queued, but not for this machine
    paused: int = 0
    held: int = 0  # by a worker that its engine would bring back, or by this one
    unheld: int = 0
    silent: int = 0  # of those held elsewhere, with a holder that has missed beats, and could run here
    fellows: int = 0  # held by other workers of the same launch
    gangs: int = 0  # running elsewhere, and could take this worker
    # a run too large for the GPUs here, and the size that it outgrew
    outgrown: tuple[str, int] | None = None


def sort_open(
    opens: Iterable[Open],
    claimant: Claimant,
    sessions: Sessions,
    can_ever: CanEver,
    mine: Collection[str] | None = None,
) -> SortedRuns:
    """`can_ever`: would a run fit on this machine when empty? `mine`: the runs that this session carries out;
    any other that it holds by the log alone is free. None: all that it holds."""
    runs = SortedRuns()
    for queue, run in opens:
        state, asked = run.state, queue.job.resources.larger_than(run.state.outgrew)
        own = state.session == claimant.session
        dropped = own and mine is not None and run.key.run not in mine
        lost = state.state == RUNNING and (dropped or state.session in sessions.stale)
        if state.state == QUEUED or lost:
            if can_ever(asked):
                runs.free.append((queue, run))
            else:
                runs.unfit += 1
                runs.outgrown = outgrown(queue.job, run, can_ever) or runs.outgrown
        elif state.state == PAUSED:
            runs.paused += 1
        else:
            if own or _comes_back(state, sessions):
                runs.held += 1
            else:
                runs.unheld += 1
            runs.silent += not own and state.session in sessions.silent and can_ever(asked)
            runs.fellows += not own and _is_of_launch(state, claimant)
            runs.gangs += not own and asked.nodes > 1 and can_ever(asked)
    return runs


def needed(job: Job, state: RunState) -> Job:
    """The job with the resources that this run of it needs: one that outgrew a GPU needs a larger one."""
    return replace(job, resources=job.resources.larger_than(state.outgrew)) if state.outgrew else job


def fitting(fits: Fits, job: Job) -> Callable[[RunState], bool]:
    """Whether a run of this sweep fits now, with the GPU that it needs."""
    return lambda state: fits(needed(job, state))


def outgrown(job: Job, run: OpenRun, can_ever: CanEver) -> tuple[str, int] | None:
    """A run that does not fit this machine, and the size that it outgrew, where a larger GPU is all that is
    lacking here."""
    asked = replace(needed(job, run.state).resources, gpu_memory=None)
    return (run.key.run, run.state.outgrew) if run.state.outgrew and can_ever(asked) else None


def by_urgency(free: Iterable[Open]) -> list[Open]:
    """By priority; runs that somebody has had before go first: they waited, and a glance misses them."""
    return sorted(free, key=lambda pair: (-pair[0].job.priority, pair[1].state.head == 0))


def _comes_back(state: RunState, sessions: Sessions) -> bool:
    """Whether its holder was seen alive, and its engine would bring it back."""
    return bool((state.claim or {}).get("restarts")) and state.session in sessions.beating


def _is_of_launch(state: RunState, claimant: Claimant) -> bool:
    fleet = claimant.facts.get("fleet")
    return bool(fleet) and (state.claim or {}).get("fleet") == fleet
