"""A worker that closes a run looks at the target of its sweep."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hostler.records.launch import launches
from hostler.records.launch.launches import Generation
from hostler.records.sweep import target
from hostler.records.sweep.target import Target
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.worker.growth import Growth
from hostler.worker.machine import Machine
from seen_world import Seen


class Platform:
    """Has so many workers, and keeps what it was asked for."""

    def __init__(self, there: int | None) -> None:
        self.there, self.asked = there, list[tuple[int, int]]()

    def grow(self, workers: int, most: int) -> int | None:
        if workers:
            self.asked.append((workers, most))
        return self.there


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return Seen(tmp_path / "store")


def swept(seen: Seen, by: float, ended: int = 4, **more: Any) -> Job:
    job = seen.submit("grid", [{"lr": n} for n in range(20)])
    for index in range(ended):
        seen.claim(job, index)
        seen.end(job, index)
    given = {"fleet": "burst", "workers": 2, "most": 6, "seconds": 60.0, "boot": 5.0, **more}
    target.write(seen.store, "grid", Target(time.time() + by, **given))
    launched(seen, 3, 6)
    return job


def launched(seen: Seen, number: int, workers: int) -> None:
    now = time.time()
    one = Generation("burst", number, "token", workers, 1.0, now, now + 3600, reserved={"grid": 2.0})
    assert launches.begin(seen.store, one)


def growth(seen: Seen, platform: Platform, launch: str = "burst/3") -> tuple[Growth, list[str]]:
    said: list[str] = []
    facts = {"store": seen.store, "say": said.append, "clock": lambda: 0.0, "timing": Timing()}
    machine = cast(Machine, SimpleNamespace(**facts))
    return Growth(machine, launch, platform.grow), said


def test_late_sweep_asks_its_platform_for_more(seen: Seen) -> None:
    swept(seen, by=300)  # sixteen runs of a minute on two workers take eight
    platform = Platform(2)
    one, said = growth(seen, platform)
    one.check("grid")
    [(workers, most)] = platform.asked
    assert 2 < workers <= most == 6 and "late by about" in said[0]


def test_second_worker_that_has_seen_as_many_ends_asks_nothing(seen: Seen) -> None:
    swept(seen, by=300)
    platform = Platform(2)
    for _ in range(2):
        growth(seen, platform)[0].check("grid")
    assert len(platform.asked) == 1


@pytest.mark.parametrize(
    ("by", "launch", "there", "most"),
    [(36000, "burst/3", 2, 6), (300, "tau/1", 2, 6), (300, "burst/3", None, 6), (300, "burst/3", 2, 2)],
    ids=["in time", "another fleet", "cannot ask", "no money"],
)
def test_others_ask_for_nothing(seen: Seen, by: float, launch: str, there: int | None, most: int) -> None:
    swept(seen, by=by, most=most)
    platform = Platform(there)
    growth(seen, platform, launch)[0].check("grid")
    assert not platform.asked


@pytest.mark.parametrize(
    ("by", "launch"),
    [(-3600, "burst/4"), (300, "burst/4"), (-3600, "burst/3"), (300, "burst/5")],
    ids=["old target", "smaller launch", "passed", "no launch"],
)
def test_launch_never_grows_beyond_its_own_money(seen: Seen, by: float, launch: str) -> None:
    swept(seen, by=by, most=8)
    launched(seen, 4, 2)
    platform = Platform(2)
    growth(seen, platform, launch)[0].check("grid")
    assert not platform.asked


def test_launch_grows_to_what_it_reserved_for(seen: Seen) -> None:
    swept(seen, by=300, most=8)
    launched(seen, 4, 4)
    platform = Platform(2)
    growth(seen, platform, "burst/4")[0].check("grid")
    assert platform.asked == [(4, 4)]


def test_sweep_without_a_target_costs_a_worker_nothing(seen: Seen) -> None:
    seen.submit("grid", [{"lr": 1}])
    platform = Platform(2)
    growth(seen, platform)[0].check("grid")
    assert not platform.asked


def enlarged(seen: Seen, machine: str, launch: str = "burst/3") -> tuple[Growth, list[str], list[float]]:
    one, said = growth(seen, Platform(2), launch)
    asked: list[float] = []

    def enlarge(size: int, hourly: float, *, instead: bool = False) -> str:
        asked.extend((size, hourly))
        return machine

    one.enlarge = enlarge
    one.outgrew("0000001-grid-1", 16)
    for thread in threading.enumerate():
        if thread.name == "enlarge":
            thread.join()
    return one, said, asked


def test_run_that_outgrew_its_gpu_has_a_larger_one_asked_for(seen: Seen) -> None:
    swept(seen, by=300)
    one, said, asked = enlarged(seen, "a2-highgpu-1g")
    assert asked == [16, 6.0]  # six workers at one an hour: no more is reserved
    assert one.awaits and said == ["0000001-grid-1: needs a larger GPU: a2-highgpu-1g is asked for"]


def test_platform_without_a_larger_gpu_is_not_waited_for(seen: Seen) -> None:
    swept(seen, by=300)
    assert not enlarged(seen, "")[0].awaits
    alone, _, asked = enlarged(seen, "a2-highgpu-1g", launch="")
    assert not alone.awaits and not asked


def test_machine_that_leaves_is_replaced_by_a_larger_one(seen: Seen) -> None:
    swept(seen, by=300)
    one, said = growth(seen, Platform(2))
    asked: list[tuple[int, float, bool]] = []

    def enlarge(size: int, hourly: float, *, instead: bool = False) -> str:
        asked.append((size, hourly, instead))
        return "a2-highgpu-1g"

    one.enlarge = enlarge
    assert one.replaces("0000001-grid-1", 16) and asked == [(16, 6.0, True)]
    assert said == ["0000001-grid-1: needs a larger GPU: a2-highgpu-1g comes in the place of this machine"]
    alone, _ = growth(seen, Platform(2), launch="")
    alone.enlarge = enlarge
    assert not alone.replaces("0000001-grid-1", 16) and len(asked) == 1


def test_platform_that_answers_nonsense_is_not_waited_for(seen: Seen) -> None:
    swept(seen, by=300)
    one, _ = growth(seen, Platform(2))
    one.enlarge, one.awaits = lambda size, hourly, instead=False: cast(str, {}["prices"]), True
    with pytest.raises(KeyError):
        one._enlarge("0000001-grid-1", 16)
    assert not one.awaits
