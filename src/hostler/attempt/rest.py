"""The rest of files: for how long a process that could have written to them has left them alone.

A script that writes two files one after the other is caught between them by a kill, a stop, a suspended
machine. The files lie still then, and nobody has left them alone. So a rest ends where the look at the files
began, and counts only if the process was seen to run after that look: its death may come at any moment, and
its watch may be late. It begins when the process was last seen not to run, or when the watch itself was held
up, if that is later than the last write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from hostler.attempt.folder_parts import BEST, LUMP, NOTHING
from hostler.frozen import dataclass
from hostler.records.checkpoint.tree import TreeScan


@dataclass(frozen=True)
class Clocks:
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


class Rest:
    def __init__(self, clocks: Clocks, settle: float, steady: Callable[[], bool]) -> None:
        """`settle`: seconds after which files are at rest. `steady`: whether the process is alive, and
        neither stopped nor being killed."""
        self._clocks, self._settle, self._steady = clocks, settle, steady
        self._clock, self.wall = clocks.clock(), clocks.wall()  # when the last look at the files began
        self._since = float("-inf")  # the process runs without a break
        self._expected = float("inf")  # when the next look should begin
        self._ran = self.wall  # at this look it did
        self._ran_until = float("inf")  # by the wall clock: when it was last seen to run, if it does not now
        self._vanished: dict[str, float] = {}  # group → when a file of it was seen to have gone

    def expect_look(self, within: float) -> None:
        """The next look begins after so many seconds. A later one shows that the machine was suspended, or
        that we were stopped, and perhaps the process with us."""
        self._expected = self._clocks.wall() + within

    def begin_look(self) -> None:
        self._clock, self.wall = self._clocks.clock(), self._clocks.wall()
        if self.wall > self._expected + self._settle / 2:
            self._since = self._clock
        self._expected = float("inf")

    def is_steady(self) -> bool:
        """Whether the process runs: after a look, so that what was at rest then is left alone."""
        steady = self._steady()
        if steady:
            self._ran, self._ran_until = self.wall, float("inf")
        else:
            self._since, self._ran_until = self._clocks.clock(), self._ran
        return steady

    def seen_alive(self, sign: float) -> float:
        """Until when a process that is dead by now is known to have run, given its last sign of life by the
        wall clock. It was seen to be killed before, or the look that was due then never came: whoever started
        it may have printed meanwhile."""
        if sign > self._expected + self._settle / 2:
            return min(sign, self._ran)
        return min(sign, self._ran_until)

    def see_vanished(
        self, before: Mapping[str, TreeScan], now: Mapping[str, TreeScan], growing: Collection[str]
    ) -> None:
        """Remember when a file has gone: what is being removed has old files, and is not at rest."""
        clock = self._clocks.clock()
        for key in {*now, LUMP, BEST}:
            names = {row.name for row in now.get(key, NOTHING).rows}.union(growing)
            if any(row.name not in names for row in before.get(key, NOTHING).rows):
                self._vanished[key] = clock

    def of(self, key: str, rows: TreeScan) -> float:
        """Seconds in which nothing happened to the files of a group, up to the last look."""
        return min(self.wall - rows.newest, self._gone(key), self._clock - self._since)

    def is_reached(self, key: str, rows: TreeScan) -> bool:
        return self.of(key, rows) >= self._settle

    def is_emptied(self, key: str) -> bool:
        """Whether a group without files has lost its last one long enough ago."""
        return self._gone(key) >= self._settle

    def _gone(self, key: str) -> float:
        return self._clock - self._vanished.get(key, float("-inf"))
