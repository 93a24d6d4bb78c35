"""All processes of one run: found, signalled and ended together.

Nothing is ever signalled on the strength of a number alone: the leader's start time must be the recorded
one, or the process must carry the run's mark in its environment. A number stays taken while any process has
it as its group, so where the leader is gone but was there moments ago (`fresh`), the group itself may be
believed. Number 0 stands for a leader that was never heard of: everything on a machine descends from 0.
"""

from __future__ import annotations

import os
import signal
import time

from hostler import env, proctable
from hostler.frozen import dataclass
from hostler.proctable import ProcessRow

PATIENCE = 5.0  # seconds for killed processes to go


@dataclass(frozen=True)
class ProcessGroup:
    """The leader's number and start time, and the mark its processes carry."""

    pid: int
    start: str
    mark: str

    def members(self, *, fresh: bool = False) -> dict[int, ProcessRow]:
        """Living processes of the run, those that left its session included."""
        rows = proctable.table()
        chosen = proctable.marked(self.mark, env.MARK) if self.mark else set[int]()
        if self.pid > 0 and self._is_believed(rows.get(self.pid), fresh):
            chosen |= {row.pid for row in rows.values() if self.pid in (row.pid, row.group, row.session)}
            chosen |= proctable.below(rows, self.pid)
        chosen.discard(os.getpid())
        return {pid: rows[pid] for pid in chosen if pid in rows and rows[pid].alive}

    def _is_believed(self, leader: ProcessRow | None, fresh: bool) -> bool:
        return fresh if leader is None else leader.start == self.start

    def send(self, number: int) -> bool:
        """Signal the leader's process group; False if it is gone."""
        leader = proctable.row(self.pid)
        if leader is None or leader.start != self.start:
            return False
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def end(self, timeout: float = PATIENCE, *, fresh: bool = False) -> list[ProcessRow]:
        """Kill every member and wait until none is left; what was killed."""
        killed: dict[int, ProcessRow] = {}
        deadline = time.monotonic() + timeout
        while True:
            rows = self.members(fresh=fresh)
            if not rows or time.monotonic() > deadline:
                return list(killed.values())
            killed |= rows
            for pid in rows:
                _kill(pid)
            time.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
