from __future__ import annotations

import itertools
import os
from types import SimpleNamespace
from typing import Any

from hostler.attempt.usage import Usage, sample
from hostler.worker.run.exit import Exit
from hostler.worker.run.meter import Meter


def meter(times: list[float], memory: int | None = None) -> Meter:
    process: Any = SimpleNamespace(use=lambda gpus, limit: sample(os.getpid(), gpus(), limit=limit))
    return Meter(process, (), memory, lambda: times[0], every=10.0)


def logged(times: list[float], one: Meter, until: float, tick: float = 0.25) -> list[float]:
    """When samples were logged."""
    found: list[float] = []
    while times[0] < until:
        if one.due() and one.metrics(one.sample()):
            found.append(times[0])
        times[0] += tick
    return found


def test_samples_come_soon_then_ever_more_rarely_then_steadily() -> None:
    times = [0.0]
    found = logged(times, meter(times), 60.0)
    gaps = [b - a for a, b in itertools.pairwise(found)]
    assert found[0] == 0.25 and len([at for at in found if at <= 1.0]) >= 2
    assert gaps == sorted(gaps) and gaps[-1] == 10.0 and len(found) < 15


def test_limited_memory_is_measured_every_second_and_logged_less() -> None:
    times = [0.0]
    one = meter(times, memory=1 << 50)
    logged(times, one, 30.0)
    looks = []
    for _ in range(50):
        if one.due():
            one.sample()
            looks.append(times[0])
        times[0] += 0.25
    assert len(looks) in (12, 13)


def test_short_run_costs_no_look_at_all_processes() -> None:
    times = [0.0]
    assert logged(times, meter(times), 0.1, tick=0.01) == []


def test_cpu_is_the_share_between_two_samples() -> None:
    times = [0.0]
    one = meter(times)
    times[0] = 10.0
    assert one.metrics(Usage(cpu_seconds=0.0, rss=5))["system/memory"] == 5
    times[0] = 30.0
    assert one.metrics(Usage(cpu_seconds=30.0))["system/cpu"] == 1.5


def test_run_that_ended_before_the_first_sample_is_measured() -> None:
    times = [0.0]
    one = meter(times)
    assert one.last(Exit(code=0, max_rss=7, cpu_seconds=0.5, seconds=1.0)) == {
        "system/memory": 7.0,
        "system/cpu": 0.5,
    }
    assert one.last(Exit(code=127, spawn_error="command not found: x")) == {}
    times[0] = 1.0
    one.metrics(Usage())
    assert one.last(Exit(code=0)) == {}
