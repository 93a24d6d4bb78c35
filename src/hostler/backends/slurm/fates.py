"""How tasks that died hard ended, as Slurm tells it: one question for all tasks of an array.

The accounting database is asked (`sacct`), which knows earlier starts of a requeued task, too; where a site
has none, or the database has not heard of the end yet, the controller (`scontrol`), which forgets a job some
minutes after its end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hostler.backends.slurm.states import meaning

MEMORY = "memory"
FATES = {
    "OUT_OF_MEMORY": MEMORY,
    "PREEMPTED": "preempted",
    "REQUEUED": "preempted",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node-fail",
    "BOOT_FAIL": "node-fail",
    "CANCELLED": "cancelled",
}
FRESH = 20.0  # seconds that an array is not asked about again
FIELDS = ("JobID", "State", "ExitCode", "MaxRSS", "AllocTRES", "NNodes")
KILLED = ":9"  # how an exit code ends after SIGKILL
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass
class Start:
    """A start of a task: a task that was requeued has several."""

    state: str
    killed: bool
    allowed: float  # bytes of memory on each node; 0 if nobody limits it
    out_of_memory: bool = False

    @property
    def is_over(self) -> bool:
        return bool(meaning(self.state).attempt)

    @property
    def fate(self) -> str:
        return MEMORY if self.out_of_memory else _fate(self.state)


def of_accounting(text: str, task: str) -> str | None:
    """The last end of a task by lines of `sacct --parsable2 --duplicates`; None if it has none yet."""
    starts = list[Start]()
    for line in text.splitlines():
        row = dict(zip(FIELDS, line.strip().split("|"), strict=False))
        name = row.get("JobID", "")
        if name == task:
            killed = row.get("ExitCode", "").endswith(KILLED)
            starts.append(Start(row.get("State", ""), killed, _allowed(row)))
        elif name.startswith(f"{task}.") and starts and _took_too_much(row, starts[-1]):
            starts[-1].out_of_memory = True
    return next((start.fate for start in reversed(starts) if start.is_over), None)


def of_controller(text: str, task: str) -> str:
    """The end of a task by the lines of `scontrol --oneliner show job`; '' if unknown."""
    for line in text.splitlines():
        fields = dict(re.findall(r"(?:^|\s)(JobId|ArrayJobId|ArrayTaskId|JobState)=(\S*)", line))
        array, index = fields.get("ArrayJobId"), fields.get("ArrayTaskId")
        if task in (f"{array}_{index}", fields.get("JobId") if array is None else None):
            return _fate(fields.get("JobState", ""))
    return ""


@dataclass
class Fates:
    """`run` types a command, and returns what it printed, or None if it failed."""

    run: Callable[[Sequence[str]], str | None]
    clock: Callable[[], float] = time.monotonic
    _answers: dict[tuple[str, ...], tuple[float, str]] = field(default_factory=dict)  # by question

    def of(self, task: str) -> str:
        array = task.partition("_")[0]
        given = f"--format={','.join(FIELDS)}"
        text = self._ask("sacct", "--noheader", "--parsable2", "--duplicates", given, "--jobs", array)
        fate = of_accounting(text, task)
        if fate is None:
            fate = of_controller(self._ask("scontrol", "--oneliner", "show", "job", array), task)
        return fate

    def _ask(self, *words: str) -> str:
        known = self._answers.get(words)
        if known is None or self.clock() - known[0] > FRESH:
            known = self._answers[words] = (self.clock(), self.run(words) or "")
        return known[1]


def _fate(state: str) -> str:
    return FATES.get((re.findall(r"[A-Z_]+", state.upper()) or [""])[0], "")


def _took_too_much(step: Mapping[str, str], task: Start) -> bool:
    """Whether a step ended for its memory. Without cgroups Slurm measures it and calls the kill a failure:
    the step was killed, and its memory was over what the task has."""
    if _fate(step.get("State", "")) == MEMORY:
        return True
    return task.killed and 0 < task.allowed <= _bytes(step.get("MaxRSS", ""))


def _allowed(row: Mapping[str, str]) -> float:
    """Memory on one node, by `cpu=1,mem=400M,node=1`."""
    memory = re.search(r"(?:^|,)mem=([^,]+)", row.get("AllocTRES", ""))
    nodes = row.get("NNodes", "")
    return _bytes(memory[1]) / max(1, int(nodes) if nodes.isdigit() else 1) if memory else 0.0


def _bytes(text: str) -> float:
    """`413568K`, `537.50M`; 0 for what is not a size."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text.strip())
    return float(size[1]) * UNITS[size[2]] if size else 0.0
