"""Runs that nobody has touched, as glances at the queues found them: candidates for the next claims.

Of the first few for each worker there is, every worker has its own share, by its place among the heartbeats,
and takes that in order: so the oldest go first, W workers do not all reach for the same run, and one glance
serves several claims. Who has none left takes from the others' at random. A wrong place only costs requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from hostler.frozen import dataclass
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.spec.job import Job

DEPTH = 8  # runs of its own that a worker sees in one glance
TRIES = 4  # lost claims among the others' before somebody else may look


@dataclass(frozen=True)
class WorkerPosition:
    """This worker's position among all workers."""

    rank: int = 0
    of: int = 1


class Glances:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._own: dict[str, list[int]] = {}  # sweep → indices of our share, the oldest last
        self._seen: dict[str, int] = {}  # sweep → how far we have looked for our share

    def forget(self, sweep: str) -> None:
        """The sweep is another since: what was seen of it may be in it no longer."""
        self._own.pop(sweep, None)
        self._seen.pop(sweep, None)

    def choose(
        self, queues: Iterable[Queue], fits: Callable[[Job], bool], place: WorkerPosition
    ) -> Iterator[tuple[Queue, OpenRun]]:
        """Candidates in the order to try them in; whoever takes one asks for no more."""
        for queue in queues:
            if not fits(queue.job):
                continue
            while self._look_on(queue, place):
                yield from self._popped(queue, self._own[queue.job.name])
            others = queue.glance(DEPTH * place.of)
            yield from self._popped(queue, self._rng.sample(others, min(TRIES, len(others))))

    def _look_on(self, queue: Queue, place: WorkerPosition) -> bool:
        """Whether some of our share is left, or was found further on."""
        name = queue.job.name
        if not self._own.get(name) and self._seen.get(name, 0) < queue.job.count:
            found = queue.glance(DEPTH * place.of, self._seen.get(name, 0))
            self._own[name] = [index for index in reversed(found) if index % place.of == place.rank]
            self._seen[name] = found[-1] + 1 if found else queue.job.count
        return bool(self._own.get(name))

    def _popped(self, queue: Queue, indices: list[int]) -> Iterator[tuple[Queue, OpenRun]]:
        while indices:
            yield queue, queue.run(indices.pop())
