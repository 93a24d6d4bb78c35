"""The runs that a worker gave to this one process: each with its own folder, log, parameters and end.

A process that takes them begins each with `take`, and says of each that it has left (`leave`), or that it
would not have it (`send_back`). What it says of one goes to that one's log.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.errors import HostlerError
from hostler.frozen import dataclass
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.sdk.signals import Signals

if TYPE_CHECKING:
    from hostler.sdk.run import Run
    from hostler.sdk.start import Wish

NOT_FINISHED = 75


@dataclass(frozen=True)
class SharedRun:
    """A run of this process. `words`: the arguments that a process of its own would have had."""

    words: tuple[str, ...]
    cwd: Path
    folder: Handoff
    of: tuple[str, str, int]  # run, sweep, attempt

    @property
    def run(self) -> str:
        return self.of[0]

    def take(self, given: Any, wish: Wish, signals: Signals) -> Run:
        """Begin this run."""
        from hostler.sdk.start import take  # with all of the library

        return take(self.folder.folder, self.of, given, wish, say=self.say, signals=signals)

    def say(self, line: str) -> None:
        """A line of the library's, in this run's log."""
        self.print(f"hostler: {line}")

    def print(self, text: str) -> None:
        with self.folder.log.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def fail(self, error: BaseException) -> None:
        """It ended with this error, as a process of its own would have shown it, and left."""
        if isinstance(error, HostlerError):
            self.say(str(error))
            self.leave(error.exit_code)
            return
        self.print("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())
        self.leave(1)

    def leave(self, code: int = 0) -> None:
        """Its run is over in this process, as a process of its own would be with this code."""
        handoff.write(self.folder.seat, {"code": code})

    def send_back(self, why: str, *, limit: int | None = None, alone: bool = False) -> None:
        """Reject the run here. `limit`: the number that would fit; `alone`: it must run by itself."""
        self.say(f"left to another process: {why}")
        said = {"why": why, "limit": limit, "alone": alone}
        handoff.write(self.folder.seat, {"code": NOT_FINISHED, "apart": said})


class Common(Signals):
    """A signal to the process is one to each of its runs, as long as any is there."""

    def uninstall(self) -> None:
        pass


def seats() -> list[SharedRun]:
    """The slots of this process, by run; empty unless several runs share it."""
    path = env.seats()
    record = handoff.read(path) if path is not None else None
    rows: Sequence[Mapping[str, Any]] = (record or {}).get("seats", ())
    if not rows:
        return []
    before = len(rows[0]["argv"]) - len(sys.argv[1:])  # words that started this process: an interpreter's
    return [_seat(row, before, rows[0]["env"].get(env.DATA, "")) for row in rows]


def limit() -> int | None:
    """The largest number of runs known to fit together; None if unknown."""
    path = env.seats()
    record = (handoff.read(path) if path is not None else None) or {}
    return int(record["limit"]) if record.get("limit") else None


def _seat(row: Mapping[str, Any], before: int, data: str) -> SharedRun:
    """`data`: the first one's folder of links. All have the same links, and a process that takes several
    runs must see that what they name is the same."""
    given = row["env"]
    own = given.get(env.DATA)
    words = (word.replace(own, data) if own else word for word in row["argv"][before:])
    of = given[env.RUN], given[env.SWEEP], int(given[env.ATTEMPT])
    return SharedRun(tuple(words), Path(row["cwd"]), Handoff(Path(given[env.RUN_DIR])), of)
