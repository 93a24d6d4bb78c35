"""Gangs that are forming, the one a worker should join, and the moment one may go.

A worker joins the oldest forming gang it fits, and starts none while one is forming that it fits; a leader
that finds an older one gives its own run back and joins that. The order is that of the claims, the same for
everybody, so that of several forming at once all but the oldest dissolve: no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records.run.gang import Gang
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.states import RUNNING
from hostler.store import Store
from hostler.worker.run.kinds import DONE, NOT_FINISHED, RANK_LOST

GO, WAIT, GIVE_UP = "go", "wait", "give up"
LINGER = 10  # graces in which the others must have ended after the first is done


@dataclass(frozen=True)
class Forming:
    """A claimed run whose gang has not gone yet."""

    job: Job
    key: RunKey
    attempt: int
    session: str  # of its leader
    at: float  # when it was claimed, as its claim says

    @property
    def age(self) -> tuple[float, str]:
        """Older ones first; the same order for whoever looks."""
        return self.at, self.key.run


@dataclass(frozen=True)
class Joined:
    """A place in a gang that another worker leads."""

    job: Job
    key: RunKey
    attempt: int
    slot: int
    leader: str


@dataclass(frozen=True)
class GatheringView:
    """A forming gang as its leader sees it; counts are with the leader."""

    nodes: int
    fewest: int
    joined: int
    ready: int
    since: float  # seconds since it began to form
    calm: float  # seconds since somebody came or left


def decide(view: GatheringView, gather: float, lease: float) -> str:
    """May the gang go? Full and ready: yes. With fewer, where they are enough, once nobody has come for a
    lease. Who has come and is not ready yet is waited for, however long that takes: it beats. Pure."""
    settled = view.ready == view.joined
    if view.ready >= view.nodes:
        return GO
    if settled and view.ready >= view.fewest and (view.calm >= lease or view.since >= gather):
        return GO
    if view.joined >= view.fewest and not settled:
        return WAIT
    return GIVE_UP if view.since >= gather else WAIT


class Rendezvous:
    """The forming gangs of a store, as one worker sees them."""

    def __init__(self, store: Store, session: str) -> None:
        self._store, self._session = store, session
        self._gone: set[tuple[str, int]] = set()  # gangs that have gone: never forming again

    def forming(self, opens: Iterable[tuple[Queue, OpenRun]], stale: Iterable[str] = ()) -> list[Forming]:
        """Gangs that others lead and that lack workers, the oldest first."""
        formings = []
        for queue, run in opens:
            state = run.state
            if queue.job.resources.nodes < 2 or state.state != RUNNING or state.stop:
                continue
            if state.session and state.session != self._session and state.session not in set(stale):
                at = float((state.claim or {}).get("at", 0.0))
                formings.append(Forming(queue.job, run.key, state.attempt, state.session, at))
        return sorted((one for one in formings if self._lacks(one)), key=lambda one: one.age)

    def everywhere(self, only: Iterable[str], known: dict[str, Queue]) -> list[Forming]:
        """The same, for one who has no queues at hand; `known` keeps them for the next look."""
        opens: list[tuple[Queue, OpenRun]] = []
        for name in sorted(only) or sweeps.names(self._store):
            try:
                queue = known.get(name) or Queue(self._store, sweeps.load_spec(self._store, name)[0])
                known[name] = queue
                if queue.job.resources.nodes > 1 and not queue.job.by_hand:
                    opens += [(queue, run) for run in queue.open()]
            except (MissingError, DamagedError, NewerFormatError):
                continue
        return self.forming(opens)

    def join(
        self, gangs: Iterable[Forming], fits: Callable[[Job], bool], facts: Mapping[str, Any]
    ) -> Joined | None:
        """A place in the oldest that fits."""
        for forming in gangs:
            if fits(forming.job):
                gang = Gang(self._store, forming.key.run, forming.attempt)
                slot = gang.join({**facts, "session": self._session}, forming.job.resources.nodes)
                if slot is not None:
                    return Joined(forming.job, forming.key, forming.attempt, slot, forming.session)
        return None

    def _lacks(self, one: Forming) -> bool:
        """Whether it has not gone, and a worker could still come to it; not if we are in it already, or have
        given up in it. Who was only taken for dead may come again."""
        if (one.key.run, one.attempt) in self._gone:
            return False
        gang_view = Gang(self._store, one.key.run, one.attempt).look()
        if gang_view.go:
            self._gone.add((one.key.run, one.attempt))
        mine = any(
            member.session == self._session and (member.exit or {}).get("kind") != RANK_LOST
            for member in gang_view.others
        )
        return gang_view.go is None and not mine and len(gang_view.here) < one.job.resources.nodes - 1


def patience(kind: str, timing: Timing, *, going: bool) -> float:
    """Seconds in which the others must have ended after a process that ended so. A worker that has to go
    itself keeps half of its time for the checkpoint."""
    longest = {DONE: LINGER * timing.grace, NOT_FINISHED: 2 * timing.grace}.get(kind, 1.25 * timing.lease)
    return min(longest, timing.grace / 2) if going else longest
