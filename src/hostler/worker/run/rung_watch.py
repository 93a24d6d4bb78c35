"""The rung watch follows a run's metric, and has it judged at each level it reaches.

A thread of its own writes the value down and reads the others', so that the run never waits for the store;
while that does not answer, the run goes on and is judged later. Levels below the one that a promoted run was
let go on to are not judged again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from hostler.errors import StoreError
from hostler.records.run import log
from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from hostler.records.sweep import rungs
from hostler.records.sweep.rungs import RungReader
from hostler.search import telling
from hostler.search.base import Go, Pause, Pruner, Standing, Stop, score
from hostler.spec.job import Objective
from hostler.store import Store

AGAIN = 1.0  # seconds until a store that did not answer is asked again


class RungWatch:
    """Watches an attempt. `earlier` gives its points so far; when it should not go on, `save` is called
    first, and then `stop` with the reason."""

    def __init__(
        self,
        store: Store,
        key: RunKey,
        attempt: int,
        pruner: Pruner,
        objective: Objective,
        reader: RungReader,
        *,
        until: int = 0,
        earlier: Callable[[], Sequence[Point]] = tuple,
        save: Callable[[], None] = lambda: None,
        stop: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        self._store, self._key, self._attempt = store, key, attempt
        self._pruner, self._objective, self._reader = pruner, objective, reader
        self._until, self._earlier = until, earlier
        self._save, self._stop, self._say = save, stop, say
        self._new: deque[tuple[int, float]] = deque()
        self._curve: list[float] | None = None  # scores so far; None until the earlier ones are read
        self._level = 0  # the last that was judged
        self.rung: int | None = None  # where others were better: it is paused there
        self._over = False  # nobody is judged any more
        self._out = False  # it was told to stop here: what it logs until it does counts for nothing
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, points: Iterable[Point]) -> None:
        """Take logged points; never waits."""
        name = self._objective.name
        found = [(point.step, point.values[name]) for point in points if name in point.values]
        if found:
            self._new.extend(found)
            self._wake.set()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name=f"rungs-{self._key.run}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The process has exited: it is not judged any more, but what it reached is written down."""
        self._over = True
        self._wake.set()
        if self._thread:
            self._thread.join()
        try:
            self.work()
        except StoreError:
            pass  # others are judged without it

    def work(self) -> None:
        """Judge what has come in since; raises if the store does not answer, and goes on there next time."""
        if self._curve is None:
            self._curve = [self._score(p.values[self._objective.name]) for p in self._before()]
        while self._new and not self._out:
            step, value = self._new[0]
            level = self._pruner.level(step, self._key.run)
            if level > self._level and level >= self._until:
                self._judge(level, step, value)
                self._level = level
            self._curve.append(self._score(value))
            self._new.popleft()

    def _loop(self) -> None:
        again: float | None = None
        while not self._over:
            self._wake.wait(again)
            self._wake.clear()
            try:
                self.work()
                again = None
            except StoreError as error:
                self._say(f"not judged yet: {error}") if again is None else None
                again = AGAIN

    def _judge(self, level: int, step: int, value: float) -> None:
        found: rungs.Values = {}
        if self._pruner.compares:
            rungs.write(self._store, self._key, level, value, step, self._attempt)
            found = self._reader.update(level)
        if self._over:
            return
        curve = [*(self._curve or ()), self._score(value)]
        place = Standing(self._key.run, level, curve)
        verdict = self._pruner.judge(place, telling.scores(found, self._objective.goal))
        if isinstance(verdict, Go):
            return
        self._over = self._out = True
        self._say(_said(verdict, step))
        self.rung = level if isinstance(verdict, Pause) else None
        self._save()
        self._stop(log.RUNG if isinstance(verdict, Pause) else log.PRUNE)

    def _before(self) -> list[Point]:
        return [point for point in self._earlier() if self._objective.name in point.values]

    def _score(self, value: float) -> float:
        return score(value, self._objective.goal)


def _said(verdict: Pause | Stop, step: int) -> str:
    if isinstance(verdict, Pause):
        return f"pauses at step {step}: others are better so far; it goes on if that changes"
    return f"ends at step {step}: {verdict.why}"
