"""Rows of `squeue` as data. Fields are asked for one by one, so that every version answers the same.

A pending array is one line for many tasks: `71_[3-9,12%4]`. Fields are separated by a character that no
name of ours holds; the comment, which may hold anything, is the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from hostler.backends.slurm import queue
from hostler.backends.terminal import Ran, Terminal

SEPARATOR = "\x1f"
FIELDS = ("%i", "%T", "%r", "%N", "%L", "%o", "%j", "%k")
FORMAT = SEPARATOR.join(FIELDS)
WHOLE = {"SLURM_BITSTR_LEN": "0"}  # the variable by which squeue cuts no list of tasks short

_ARRAY = re.compile(r"(?P<job>\d+)_\[(?P<tasks>[^\]%]*)(%\d+)?\]")


@dataclass(frozen=True)
class QueueRow:
    id: str  # 71, 71_3, or 71_[4-9] for tasks that still wait
    state: str
    reason: str
    node: str
    left: str  # of its time limit
    name: str
    comment: str

    @property
    def tasks(self) -> int:
        """How many workers the row stands for."""
        return count(self.id)

    @property
    def array(self) -> str:
        """The job of which the row is all tasks that still wait; '' for a task or a job of its own.

        squeue's lists of tasks (`3-9`, `0-8:2`, `%4`) are not what scancel takes.
        """
        match = _ARRAY.fullmatch(self.id)
        return match["job"] if match else ""


def parse(text: str) -> list[QueueRow]:
    """Rows of squeue's answer. Lines that are not in the format (a site's banner) are passed over."""
    rows = []
    for line in text.splitlines():
        parts = line.split(SEPARATOR, len(FIELDS) - 1)
        if len(parts) == len(FIELDS) and re.match(r"\d+", parts[0]):
            job, state, reason, node, left, _, name, comment = (part.strip() for part in parts)
            rows.append(QueueRow(job, state, reason, node, left, name, comment))
    return rows


def count(job: str) -> int:
    match = _ARRAY.fullmatch(job)
    if not match:
        return 1
    return sum(_span(part) for part in match["tasks"].split(",") if part and part != "...")


def _span(part: str) -> int:
    """`7`, `3-9` or `0-30:2`."""
    match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
    if not match:
        return 1
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    return len(range(first, last + 1, step))


# `squeue`, asked once for all fleets: a moment later its answer still holds.


FRESH, FRESH_MAX = 0.5, 15.0  # seconds that squeue is not asked again: more while it answers the same


@dataclass
class Listing:
    terminal: Terminal
    clock: Callable[[], float]
    _answer: tuple[float, Ran] | None = None  # the last, and when it came
    _fresh: float = FRESH

    def now(self) -> Ran:
        last = self._answer
        if last is None or self.clock() - last[0] > self._fresh:
            words = ["squeue", "--noheader", "--user", self.terminal.me(), "--format", queue.FORMAT]
            ran = self.terminal.run(words, "", queue.WHOLE)
            same = last is not None and _but_times(ran.out) == _but_times(last[1].out)
            self._fresh = min(2 * self._fresh, FRESH_MAX) if same else FRESH
            self._answer = (self.clock(), ran)
            return ran
        return last[1]

    def forget(self) -> None:
        """Something was queued or ended: the next answer is another."""
        self._answer, self._fresh = None, FRESH


def _but_times(text: str) -> list[QueueRow]:
    """Rows of an answer without the time they have left, which changes always."""
    return [replace(row, left="") for row in parse(text)]
