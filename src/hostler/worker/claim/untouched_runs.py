"""Runs that nobody has touched, as glances at the queues found them: candidates for the next claims.

Of the first few for each worker there is, every worker has its own share, by its place among the heartbeats,
and takes that in order: so the oldest go first, W workers do not all reach for the same run, and one glance
serves several claims. As long as nobody else takes from its share, it goes on in it without a look: a glance
reads the names of all shares, and a lost claim tells the same. Who has none left takes from the others' at
random. A wrong place only costs requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from hostler.frozen import dataclass
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.spec.job import Job

DEPTH = 8  # runs of its own that a worker sees in one glance
BACK = 2  # such windows before the end are looked at for runs of others; all of them by a deep look
TRIES = 4  # lost claims among the others' before somebody else may look


@dataclass(frozen=True)
class WorkerPosition:
    """This worker's position among all workers."""

    rank: int = 0
    of: int = 1

    def holds(self, index: int) -> bool:
        """Whether a run is of its share."""
        return index % self.of == self.rank


class UntouchedRuns:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._own: dict[str, list[int]] = {}  # sweep → indices of our share, the oldest last
        self._seen: dict[str, int] = {}  # sweep → how far we have looked for our share
        self._looks: set[str] = set()  # sweeps to glance at before going on: others take of our share
        self._unseen: set[str] = set()  # sweeps whose share at hand was not looked at

    def forget(self, sweep: str) -> None:
        """The sweep is another since: what was seen of it may be in it no longer."""
        self._own.pop(sweep, None)
        self._seen.pop(sweep, None)
        self._looks.discard(sweep)

    def move(self) -> None:
        """This worker's place is another: the rest of its shares is chosen anew, from where it begins."""
        for name, own in self._own.items():
            if own:
                self._seen[name] = own[-1]
                own.clear()
            self._looks.add(name)

    def choose(
        self, queues: Iterable[Queue], fits: Callable[[Job], bool], place: Callable[[], WorkerPosition]
    ) -> Iterator[tuple[Queue, OpenRun]]:
        """Candidates in the order to try them in; whoever takes one asks for no more. `place`: asked anew for
        each window, as it may be another since a lost claim."""
        for queue in queues:
            if not fits(queue.job):
                continue
            while self._look_on(queue, place()):
                yield from self._own_share(queue)
            window = DEPTH * place().of
            others = queue.glance(window, 0 if queue.is_narrowed else queue.job.count - BACK * window)
            for index in self._rng.sample(others, min(TRIES, len(others))):
                yield queue, queue.run(index)

    def _look_on(self, queue: Queue, place: WorkerPosition) -> bool:
        """Whether some of our share is left, or was found further on."""
        name, window = queue.job.name, DEPTH * place.of
        while not self._own.get(name) and (seen := self._seen.get(name, 0)) < queue.job.count:
            if name in self._seen and name not in self._looks:
                found, self._seen[name] = (
                    queue.share(place.rank, place.of, seen, seen + window),
                    seen + window,
                )
                self._unseen.add(name)
            else:
                found = queue.glance(window, seen)
                self._seen[name] = found[-1] + 1 if found else queue.job.count
                self._looks.discard(name)
                self._unseen.discard(name)
            self._own[name] = [index for index in reversed(found) if place.holds(index)]
        return bool(self._own.get(name))

    def _own_share(self, queue: Queue) -> Iterator[tuple[Queue, OpenRun]]:
        name, own = queue.job.name, self._own[queue.job.name]
        while own:
            index = own.pop()
            yield queue, queue.run(index)
            self._looks.add(name)  # whoever asks for another could not have this one
            if name in self._unseen:
                own.clear()
                self._seen[name] = index + 1
