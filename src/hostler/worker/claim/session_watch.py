"""The watch of one worker over the heartbeats of all: fed by its own beats, read when it looks for runs.

A lost worker is so noticed a lease after its last beat, however long this one was busy. With every beat the
heartbeats are listed once, by all workers of a small fleet and by about `WATCHERS` of a large one; the others
list them once a lease, to see how many there are. The beat and the search for runs are two threads.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterable

from hostler.frozen import dataclass
from hostler.records.run import heartbeats
from hostler.records.run.heartbeats import Watch
from hostler.settings import Timing
from hostler.store import Store
from hostler.worker.claim.claimant import Claimant

WATCHERS = 64  # workers of a large fleet that list the heartbeats with every beat
QUIET = 1.5  # beats by which a predecessor's last one is older than ours: it did not outlive its place
MISSED = 2.5  # beats without a sign of life after which a worker may be lost


@dataclass(frozen=True)
class Sessions:
    """Sessions of other workers, as their heartbeats show them."""

    stale: frozenset[str] = frozenset()  # they stand still, or are known to be dead
    beating: frozenset[str] = frozenset()  # seen alive
    silent: frozenset[str] = frozenset()  # they have missed beats, and may be lost
    names: tuple[str, ...] = ()  # of all that have a heartbeat, sorted

    @property
    def alive(self) -> int:
        """Workers that are not known to be lost; this one at least."""
        return max(1, len(set(self.names) - self.stale))


class SessionWatch:
    def __init__(
        self,
        store: Store,
        claimant: Claimant,
        timing: Timing,
        clock: Callable[[], float],
        rng: random.Random | None = None,
    ) -> None:
        self._store, self._claimant, self._timing, self._clock = store, claimant, timing, clock
        self._watch, self._lock = Watch(timing.lease), threading.Lock()
        self._share = (rng or random.Random()).random()  # this worker watches if the fleet is small enough
        self._beating = 0  # heartbeats that were new in the last read
        self._etags: dict[str, str] = {}
        self._holders: frozenset[str] = frozenset()  # of open runs, as the logs name them
        self._seen_deep: frozenset[str] = frozenset()  # lost sessions whose runs a deep look has seen
        self._recent: frozenset[str] = frozenset()  # beat just now, by the store's clock
        self._listed = -math.inf

    def beat(self) -> None:
        """Watch, if this worker is among those that do; called with every beat."""
        if self._share * self._beating < WATCHERS or self._age >= self._timing.lease:
            self.look()

    def look(self, holders: Iterable[str] = (), *, whole: bool = False) -> Sessions:
        """List the heartbeats now. `holders`: sessions that hold a run by its log, watched from now on even
        without a heartbeat; `whole`: there are no others."""
        stamp = self._clock()
        entries = heartbeats.entries(self._store)
        etags, own = (
            {name: entry.etag for name, entry in entries.items()},
            entries.get(self._claimant.session),
        )
        late = own.modified - QUIET * self._timing.beat if own else -math.inf
        with self._lock:
            known = frozenset() if whole else self._holders
            self._holders = known.union(filter(None, holders))
            if stamp >= self._listed:
                self._beating = sum(etags[name] != self._etags.get(name) for name in etags)
                self._listed, self._etags = stamp, etags
                self._recent = frozenset(name for name, entry in entries.items() if entry.modified > late)
            self._watch.observe(stamp, etags, {*etags, *self._holders} - {self._claimant.session})
            self._seen_deep &= self._lost
            return self._sessions

    def recent(self) -> Sessions:
        """The sessions as of the last read, if that is not over two beats old; else they are listed now."""
        if self._age > 2 * self._timing.beat:
            return self.look()
        with self._lock:
            return self._sessions

    @property
    def known(self) -> int:
        """How many workers had a heartbeat at the last read; this one at least."""
        with self._lock:
            return max(1, len(self._etags))

    @property
    def lost(self) -> frozenset[str]:
        """Lost sessions of which no deep look has seen the runs yet."""
        with self._lock:
            return self._lost - self._seen_deep

    @property
    def silent(self) -> frozenset[str]:
        """Sessions that have missed beats, and may be lost."""
        with self._lock:
            return self._silent

    @property
    def outlived(self) -> frozenset[str]:
        """Sessions with a heartbeat that are known to be dead."""
        with self._lock:
            return frozenset(filter(self._is_dead, self._etags))

    def looked_deep(self, sessions: Sessions) -> None:
        """A deep look has seen all runs of these."""
        with self._lock:
            self._seen_deep |= sessions.stale

    @property
    def due(self) -> float:
        """Seconds until the next silent session has stood still for a lease."""
        with self._lock:
            still, age = self._watch.still, self._age
            return min((self._timing.lease - still[s] - age for s in self._silent), default=math.inf)

    @property
    def _age(self) -> float:
        return self._clock() - self._listed

    @property
    def _sessions(self) -> Sessions:
        return Sessions(self._lost, self._watch.beating, self._silent, tuple(sorted(self._etags)))

    @property
    def _lost(self) -> frozenset[str]:
        others = {*self._etags, *self._holders}
        return self._watch.stale | {name for name in others if self._is_dead(name)}

    def _is_dead(self, session: str) -> bool:
        """Known by the parent, or as an earlier tenant of this place that does not beat: where a queue's own
        daemon alone has died, a task that is started anew finds the one before it at work."""
        if session in self._claimant.dead:
            return True
        return self._claimant.outlives(session) and session not in self._recent

    @property
    def _silent(self) -> frozenset[str]:
        enough = MISSED * self._timing.beat
        return frozenset(s for s, still in self._watch.still.items() if still >= enough) - self._lost
