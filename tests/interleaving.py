"""Actors over one memory store whose requests happen in a given order: any race, as often as wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from hostler.errors import UsageError
from hostler.store.memory import MemoryStore


class Killed(BaseException):
    """The process is gone."""


def interleaved(
    store: MemoryStore,
    actors: Sequence[Callable[[], object]],
    schedule: Iterable[int],
    kill: Collection[int] = (),
) -> None:
    """Each request of an actor waits for its turn. After the schedule those in `kill` die, and the others go
    on to their ends. A refusal ends an actor."""
    turns = [threading.Semaphore(0) for _ in actors]
    waits, dead, over = threading.Semaphore(0), [False] * len(actors), set[int]()
    who = threading.local()

    def gate(operation: str, key: str) -> None:
        waits.release()
        turns[who.id].acquire()
        if dead[who.id]:
            raise Killed

    def run(n: int, act: Callable[[], object]) -> None:
        who.id = n
        try:
            act()
        except (Killed, UsageError):
            pass
        finally:
            over.add(n)
            waits.release()

    def step(n: int) -> None:
        turns[n].release()
        waits.acquire()

    store.before = gate
    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(actors)]
    for thread in threads:
        thread.start()
        waits.acquire()
    for n in schedule:
        if n not in over:
            step(n)
    for n in sorted(range(len(actors)), key=lambda n: n not in kill):
        dead[n] = n in kill
        while n not in over:
            step(n)
    store.before = None
    for thread in threads:
        thread.join()
