"""The ranks of one run find each other: on one machine through the run's folder, on several by a board.

Rank 0 waits for the others; where none of them uses the library, it goes on alone. A rank that another
launcher left behind is known by its dead process.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import MachineError, UsageError
from hostler.records.run import handoff, holder
from hostler.sdk.handed import HandedHome
from hostler.sdk.home import Home
from hostler.sdk.ranks.agreement import Agreement
from hostler.sdk.ranks.board import Board, WireBoard
from hostler.sdk.ranks.far_agreement import FarAgreement

JOIN = 20.0  # seconds in which all ranks must have started
JOIN_FAR = 90.0  # the same, on several machines
LOOK = 0.02
READY = "ranks/ready"


class Ranks:
    def __init__(
        self,
        rank: int,
        count: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rank, self.count, self._clock, self._pause = rank, count, clock, pause

    def announce(self, number: int, home: Home) -> None:
        """Rank 0, by hand: tell the others of this launch which run it is. `number`: of the start() here."""
        path = _launch(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        of = [home.run, home.sweep, home.attempt]
        handoff.write(path, {"holder": holder.me(), "folder": str(home.folder.folder), "of": of})

    def follow(self, number: int) -> HandedHome:
        """Another rank, by hand: it lives in the folder of the run that rank 0 of this launch has."""
        record: dict[str, Any] | None = self._wait(lambda: _alive(_launch(number)))
        if record is None:
            raise UsageError(
                f"rank {self.rank} did not find rank 0's run on this machine",
                hint="start all ranks on one machine, or use hostler run, which starts them anywhere",
            )
        run, sweep, attempt = record["of"]
        return HandedHome(Path(record["folder"]), (run, sweep, attempt), rank=self.rank)

    def gather(
        self, board: Board, say: Callable[[str], None]
    ) -> tuple[int, int, Agreement | FarAgreement | None]:
        """(rank, ranks that take part, how they agree): all of them, or rank 0 alone."""
        count = self._count(board, say)
        if count == 1:
            return self.rank, count, None
        if isinstance(board, WireBoard):
            return self.rank, count, FarAgreement(board, self.rank, count)
        return self.rank, count, Agreement(board, self.rank, count)

    def begin(self, board: Board) -> None:
        """Nobody writes a part of a checkpoint before rank 0 has restored, and cleared what was cut off."""
        if self.rank == 0:
            board.post(READY, {})
            return
        while not board.alive(READY):
            if not board.alive("ranks/0"):
                raise MachineError("rank 0 has ended", hint="its output says why")
            self._pause(LOOK)

    def _count(self, board: Board, say: Callable[[str], None]) -> int:
        longest = JOIN if board.shared else JOIN_FAR
        if self.rank == 0:
            board.clear(READY)
        board.post(f"ranks/{self.rank}", {})
        if self.rank:
            self._wait(lambda: board.alive("ranks/0"), longest)
            return self.count
        others = range(1, self.count)
        self._wait(lambda: all(board.alive(f"ranks/{rank}") for rank in others), longest)
        missing = [rank for rank in others if not board.alive(f"ranks/{rank}")]
        if not missing:
            return self.count
        if len(missing) == len(others):
            say(f"only rank 0 of {self.count} called hostler.start(): checkpoints hold its state alone")
            return 1
        raise UsageError(
            f"ranks {missing} of {self.count} have not called hostler.start()",
            hint="call it in every rank, or in rank 0 alone",
        )

    def _wait(self, look: Callable[[], Any], longest: float = JOIN) -> Any:
        deadline = self._clock() + longest
        while not (found := look()) and self._clock() < deadline:
            self._pause(LOOK)
        return found or None


def _launch(number: int) -> Path:
    what = f"{env.launch()} {os.getppid()} {number}"
    return env.machine_dir() / "launches" / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"


def _alive(path: Path) -> dict[str, Any] | None:
    record = handoff.read(path)
    return record if record is not None and holder.is_gone(record) is False else None
