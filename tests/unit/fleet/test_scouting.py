"""Candidates of a scout: measured by their launches' attempts, or left with a reason."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from hostler.errors import CloudError
from hostler.fleet.launcher import Launcher
from hostler.fleet.scouting import Scout, ScoutCandidate
from hostler.records.series.points import Point
from hostler.spec.job import Job
from hostler.spec.project import Fleet
from seen_world import Seen

WALL = 1.79e9


@dataclass
class Started:
    """A fleet whose worker claims a run and logs steps at a rate; or that has no machine."""

    fleet: Fleet
    seen: Seen
    index: int
    rate: float | None
    ended: list[str] = field(default_factory=list)

    def start(self, names: Any, runs: int, jobs: list[Job]) -> None:
        if self.rate is None:
            raise CloudError("no VM came within 600 s")
        [job] = jobs
        self.seen.claim(job, self.index, fleet=f"{self.fleet.name}/1", at=WALL)
        points = [Point(n, WALL + 20 + n / self.rate, {"loss": 1 / n}) for n in range(1, 200)]
        usage = [Point(10_000 + n, WALL + n, {"system/cpu": 1.0}) for n in range(9)]
        self.seen.curve(job, self.index, [*points, *usage])


def tried(seen: Seen, name: str, index: int, rate: float | None) -> ScoutCandidate:
    return ScoutCandidate(cast(Launcher, Started(Fleet(name, "local"), seen, index, rate)), number=1)


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return Seen(tmp_path / "store")


def scout(
    seen: Seen, job: Job, found: list[ScoutCandidate], tick: float = 1.0
) -> tuple[list[str], list[str]]:
    ended, said, now = list[str](), list[str](), [0.0]

    def pause(seconds: float) -> None:
        now[0] += tick
        time.sleep(0)  # lets the other threads on

    one = Scout(
        seen.store, job, 10.0, lambda each: ended.append(each.fleet.name), said.append, lambda: now[0], pause
    )
    one.run(found)
    return ended, said


def test_rates_are_those_of_each_launch_and_machines_go(seen: Seen) -> None:
    job = seen.submit("grid", [{"lr": n} for n in range(4)])
    found = [tried(seen, "burst", 0, 4.0), tried(seen, "tau", 2, 1.5)]
    ended, said = scout(seen, job, found, tick=0.01)
    assert [round(one.speed.rate, 3) if one.speed else None for one in found] == [4.0, 1.5]
    assert sorted(ended) == ["burst", "tau"] and len(said) == 2 and not any(one.problem for one in found)
    assert [round(one.speed.warm) if one.speed else None for one in found] == [20, 20]


def test_candidate_that_never_starts_does_not_hold_up_the_others(seen: Seen) -> None:
    job = seen.submit("grid", [{"lr": n} for n in range(4)])
    found = [tried(seen, "burst", 0, None), tried(seen, "tau", 1, 2.0)]
    ended, _ = scout(seen, job, found, tick=0.01)
    assert found[0].problem == "no VM came within 600 s" and found[0].speed is None
    assert found[1].speed is not None and ended == ["tau"]


def test_candidate_without_a_step_is_ended_with_a_reason(seen: Seen) -> None:
    job = seen.submit("grid", [{"lr": 1}])
    found = [tried(seen, "burst", 0, 1000.0)]
    cast(Any, found[0].workers).start = lambda *given: None  # its worker takes no run
    ended, _ = scout(seen, job, found, tick=5.0)
    assert found[0].problem == "no step was seen" and ended == ["burst"]
