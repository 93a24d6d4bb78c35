"""Runs that nobody has touched, as glances at the queues found them: candidates for the next claims.

Of the first few for each worker there is, every worker has its own share, by its place among the heartbeats,
and takes that in order: so the oldest go first, W workers do not all reach for the same run, and one glance
serves several claims. Who has none left takes from the others' at random. A wrong place only costs requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hostler.records.queue import OpenRun, Queue
from hostler.spec.job import Resources

DEPTH = 8  # runs of its own that a worker sees in one glance
TRIES = 4  # lost claims among the others' before somebody else may look


@dataclass(frozen=True)
class Place:
    """One of so many."""

    rank: int = 0
    of: int = 1


class Glances:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._own: dict[str, list[int]] = {}  # sweep → indices of our share, the oldest last

    def choose(
        self, queues: Iterable[Queue], fits: Callable[[Resources], bool], place: Place
    ) -> Iterator[tuple[Queue, OpenRun]]:
        """Candidates in the order to try them in; whoever takes one asks for no more."""
        for queue in queues:
            if not fits(queue.job.resources):
                continue
            own = self._own.setdefault(queue.job.name, [])
            yield from self._popped(queue, own)
            found = queue.glance(DEPTH * place.of)
            own += [index for index in reversed(found) if index % place.of == place.rank]
            others = [index for index in found if index % place.of != place.rank]
            yield from self._popped(queue, own)
            yield from self._popped(queue, self._rng.sample(others, min(TRIES, len(others))))

    def _popped(self, queue: Queue, indices: list[int]) -> Iterator[tuple[Queue, OpenRun]]:
        while indices:
            yield queue, queue.run(indices.pop())
