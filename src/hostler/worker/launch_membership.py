"""A worker as a part of a fleet's launch: it notes how long it is there, and is gone by the deadline.

It notes itself before it looks whether the launch is over, so that whoever closes that sees it or is seen.
The deadline is met by a timer of its own, early enough to save; the platform's timer, where there is one, is
for workers that are dead.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from hostler.errors import HostlerError, StoreError
from hostler.records.launch import launches, settlement
from hostler.records.launch.launches import Generation, Stay
from hostler.records.run import heartbeats
from hostler.records.run.log import CAP
from hostler.settings import Timing
from hostler.store import Store

Say = Callable[[str], None]
EARLY = 150.0  # seconds before its time limit at which a platform may give notice


def lead(left: float, timing: Timing) -> float:
    """How long before the deadline what runs is asked to save. Pure."""
    return min(2 * timing.grace, left / 4)


class Membership:
    def __init__(
        self,
        store: Store,
        name: str,
        session: str,
        timing: Timing,
        clock: Callable[[], float],
        say: Say = lambda line: None,
        machine: tuple[str, float] = ("", 0.0),
        price: float | None = None,
    ) -> None:
        """`name` is fleet/number; '' for a worker that nobody launched. `machine`: which one it is on and how
        old that is, where it costs from its first second. `price`: its own, where workers of the launch
        differ."""
        self._store, self._session, self._timing, self._clock, self._say = store, session, timing, clock, say
        self._place = launches.named(name)
        self._began = clock()
        (self._machine, self._age), self._price = machine, price
        self._done = threading.Event()
        self._timer: threading.Timer | None = None
        self._used: Callable[[], float] = lambda: 0.0
        self._thread = threading.Thread(target=self._loop, name="membership", daemon=True)
        self._generation: Generation | None = None
        self._ends: float | None = None  # by our own clock

    @property
    def price(self) -> float | None:
        """Price of this worker for an hour."""
        known = self._generation.price if self._generation else None
        return known if self._price is None or known is None else self._price

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return math.inf if self._ends is None else self._ends - self._clock()

    @property
    def ends(self) -> float | None:
        """When this worker must be gone, by its clock."""
        return self._ends

    def begin(self, deadline: float | None) -> bool:
        """Join the launch; False if it is over or its deadline has passed."""
        if self._place:
            self._note()
            self._generation = launches.read(self._store, *self._place)
            if launches.gone_at(self._store, *self._place) is not None:
                self._say("this worker's launch is over: no run is taken")
                return False
            self._thread.start()
        if deadline is None:
            return True
        remaining = deadline - heartbeats.store_time(self._store)
        self._ends = self._clock() + remaining
        if remaining <= 0:
            self._say("the deadline of this worker's fleet has passed: no run is taken")
        return remaining > 0

    def keep(self, stop: Callable[[], None], used: Callable[[], float] = lambda: 0.0) -> None:
        """Have `stop` called once, when it is time to save. `used`: what its runs have cost."""
        self._used = used
        if self._ends is not None:
            self._timer = threading.Timer(self.left - lead(self.left, self._timing), stop)
            self._timer.daemon = True
            self._timer.start()

    def noticed(self, reason: str) -> str:
        """Meaning of a platform's notice: near the deadline it is the platform that keeps the deadline."""
        return CAP if self.left < 2 * self._timing.grace + EARLY else reason

    def end(self, *, final: bool) -> None:
        """The worker leaves; `final`: nobody will start another in its place."""
        if self._timer:
            self._timer.cancel()
        self._done.set()
        if not self._place:
            return
        if self._thread.ident is not None:
            self._thread.join()
        try:
            self._note(over=True, final=final)
            if final:
                settlement.leave(self._store, *self._place, self._timing)
        except HostlerError as error:  # the next one who looks settles it
            self._say(str(error))

    def _loop(self) -> None:
        while not self._done.wait(self._timing.account):
            try:
                self._note()
            except StoreError:
                continue  # the next note says all

    def _note(self, *, over: bool = False, final: bool = False) -> None:
        assert self._place
        seconds = self._clock() - self._began
        age = self._age + seconds if self._machine else 0.0
        stay = Stay(self._session, seconds, over, final, self._used(), 0.0, self._machine, age, self._price)
        launches.note(self._store, *self._place, stay)
