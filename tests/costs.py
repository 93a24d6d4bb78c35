"""What each test costs, and for how long processors have nothing to do.

A test process counts (`metered.py`) its own processor time and that of children it has waited for. What a
test starts and leaves to itself (workers that outlive a terminal) is in nobody's count: that is the
difference between all tests' seconds and the busy seconds of the machine.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

SLOWEST = 50
PROCESSORS = "processor seconds"
SAMPLE = 5.0  # seconds between looks at the processors
PARTS = 10  # of the time that the tests took, each with the share in which processors idled
STAT = Path("/proc/stat")
FOLDER = Path("build", "suite")  # below the folder in which the suite is started
NOTED = "costs.jsonl"  # of each test that ran, in the order in which they ended
EARLIER = "earlier.jsonl"  # of those that ran the times before


@dataclass
class Cost:
    """Seconds of one test: by the clock, its setup's part of them, and of processors."""

    name: str
    process: str = ""
    began: float = 0.0
    seconds: float = 0.0
    setup: float = 0.0
    processors: float = 0.0


def processor_seconds() -> float:
    """Of this process and all children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Ledger:
    """A plugin of the process that has all reports: it writes them to a folder at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._costs: dict[str, Cost] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._costs.setdefault(report.nodeid, Cost(report.nodeid))
        if not cost.began:
            node = getattr(report, "node", None)
            cost.process = node.gateway.id if node else ""
            cost.began = round(report.start, 3)
        cost.seconds += report.duration
        cost.setup += report.duration if report.when == "setup" else 0.0
        spent: list[Any] = [spent for name, spent in report.user_properties if name == PROCESSORS]
        cost.processors += sum(spent)

    def pytest_sessionfinish(self) -> None:
        write(self._folder, self._costs.values())


def write(folder: Path, costs: Iterable[Cost], name: str = NOTED) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(_rounded(asdict(cost))) for cost in costs]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def read(folder: Path, name: str = NOTED) -> list[Cost]:
    noted = folder / name
    return [Cost(**json.loads(line)) for line in noted.read_text().splitlines()] if noted.exists() else []


def put_away(folder: Path) -> None:
    """What the last time cost becomes what is known of earlier ones."""
    known = {cost.name: cost for cost in (*read(folder, EARLIER), *read(folder))}
    if known:
        write(folder, known.values(), EARLIER)
        (folder / NOTED).unlink(missing_ok=True)


def earlier(folder: Path) -> dict[str, float]:
    """Test → seconds that it took the last time."""
    return {cost.name: cost.seconds for cost in read(folder, EARLIER)}


def _rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in facts.items()}


class Processors:
    """Looks at how long the machine's processors were busy and idle, while it is a context."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat, self._stop = stat, threading.Event()
        self.looks: list[tuple[float, float]] = []  # busy and idle seconds, of all processors
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Processors:
        self._began = time.monotonic()
        self._look()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        self.seconds = time.monotonic() - self._began

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE):
            self._look()

    def _look(self) -> None:
        if self._stat.exists():  # Linux alone has it
            self.looks.append(busy_and_idle(self._stat.read_text()))


def busy_and_idle(stat: str) -> tuple[float, float]:
    """Seconds since the machine began, by /proc/stat, whose first two numbers have those of guests."""
    user, nice, system, idle, waiting, *rest = (float(word) for word in stat.splitlines()[0].split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + sum(rest)) / ticks, (idle + waiting) / ticks


def idle_shares(looks: Sequence[tuple[float, float]], parts: int) -> list[float]:
    """The share of idle time in each of so many parts, as far as the looks tell them apart."""
    last = max(0, len(looks) - 1)
    marks = [looks[at] for at in sorted({round(part * last / parts) for part in range(parts + 1)}) if looks]
    spent = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)]
    return [idle / (busy + idle) for busy, idle in spent if busy + idle > 0]


def tell(folder: Path, processors: Processors) -> str:
    """One line for the terminal; the slowest tests go to a file of the folder."""
    costs = sorted(read(folder), key=lambda cost: -cost.seconds)
    file = folder / "slowest.txt"
    idle = _idle_line(processors)
    lines = [f"{idle}.", *_idle_parts(processors), *_counted(costs, processors), "", *_table(costs[:SLOWEST])]
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    return f"{idle}; the slowest tests: {file}"


def _idle_line(processors: Processors) -> str:
    took = f"{processors.seconds:,.0f} s"
    shares = idle_shares(processors.looks, 1)
    return f"Processors idled {shares[0]:.0%} of {took}" if shares else f"All tests took {took}"


def _idle_parts(processors: Processors) -> list[str]:
    shares = idle_shares(processors.looks, PARTS)
    return [f"In {len(shares)} parts: {' '.join(f'{share:.0%}' for share in shares)}."] if shares else []


def _counted(costs: Sequence[Cost], processors: Processors) -> list[str]:
    counted = sum(cost.processors for cost in costs)
    looks = processors.looks
    of = f" of {looks[-1][0] - looks[0][0]:,.0f} that the machine was busy" if looks else ""
    waited = sum(cost.seconds for cost in costs)
    return [f"Tests: {counted:,.0f} processor seconds{of}, {waited:,.0f} seconds by the clock, one by one."]


def _table(costs: Sequence[Cost]) -> list[str]:
    head = f"{'seconds':>8} {'setup':>8} {'processors':>10}  test"
    return [
        head,
        *(f"{cost.seconds:8.1f} {cost.setup:8.1f} {cost.processors:10.1f}  {cost.name}" for cost in costs),
    ]
