"""The runs that a worker gave to this one process: each with its own folder, log, parameters and end.

A process that takes them begins each with `take`, and says of each that it has left (`leave`), or that it
would not have it (`send_back`). What it says of one goes to that one's log. Once all have left it may wait
for the next ones (`next_group`), and is then what a new process would be to them: in the first one's working
folder, with its variables, and with an output of its own.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.errors import HostlerError
from hostler.frozen import dataclass
from hostler.records.run import handoff
from hostler.records.run.handoff import NEXT, WAITS, Handoff
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

    def all_left(self) -> None:
        """None is there any more: a signal does what it always does."""
        super().uninstall()


LOOK = 0.02  # seconds between two looks whether there are other runs
_before: list[int] = []  # how many words started this process


def seats() -> list[SharedRun]:
    """The slots of this process, by run; empty unless several runs share it."""
    rows: Sequence[Mapping[str, Any]] = _record().get("seats", ())
    if not rows:
        return []
    if not _before:
        _before.append(len(rows[0]["argv"]) - len(sys.argv[1:]))  # words that started it: an interpreter's
    return [_seat(row, _before[0], rows[0]["env"].get(env.DATA, "")) for row in rows]


def limit() -> int | None:
    """The largest number of runs known to fit together; None if unknown."""
    found = _record().get("limit")
    return int(found) if found else None


def _record() -> dict[str, Any]:
    path = env.seats()
    return (handoff.read(path) if path is not None else None) or {}


def next_group(sleep: Callable[[float], None] = time.sleep) -> bool:
    """Wait for other runs, whose `seats` and `limit` are there then; False if none will come."""
    folder, parent = env.kept(), os.getppid()
    if folder is None:
        return False
    os.chdir(folder)  # the run that it worked in is gone, and its folder in a moment
    _flush()
    handoff.write(folder / WAITS, {"pid": os.getpid()})
    while (given := handoff.read(folder / NEXT)) is None:
        if os.getppid() != parent:  # nobody is left who could end it
            return False
        sleep(LOOK)
    (folder / WAITS).unlink()
    (folder / NEXT).unlink()
    _become(given)
    return True


def _become(given: Mapping[str, Any]) -> None:
    """What a new process of the first of these runs would be."""
    output = os.open(given["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    rows = (handoff.read(Path(given["seats"])) or {})["seats"]
    env.adopt_run({**rows[0]["env"], env.SEATS: given["seats"]})
    os.chdir(rows[0]["cwd"])


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _seat(row: Mapping[str, Any], before: int, data: str) -> SharedRun:
    """`data`: the first one's folder of links. All have the same links, and a process that takes several
    runs must see that what they name is the same."""
    given = row["env"]
    own = given.get(env.DATA)
    words = (word.replace(own, data) if own else word for word in row["argv"][before:])
    of = given[env.RUN], given[env.SWEEP], int(given[env.ATTEMPT])
    return SharedRun(tuple(words), Path(row["cwd"]), Handoff(Path(given[env.RUN_DIR])), of)
