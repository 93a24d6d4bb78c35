"""What a store remembers: pure parts on rows and stays, and a store with a launch in it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from hostler.records.rows import Row
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.history import Try
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.simulate import history
from hostler.simulate.history import Launches
from hostler.simulate.study import doubt
from hostler.simulate.times import VaryingSeconds
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore

TIMING = Timing()
LAUNCH = Generation("burst", 1, launch="x", workers=2, began=1000.0, billed=True)


def row(
    state: str = "done",
    seconds: float = 60,
    attempt: int = 1,
    started: float = 0.0,
    host: str = "a",
) -> Row:
    known = Row("id", "name", "sweep", 0, state, {}, attempt=attempt, host=host, seconds=seconds)
    return replace(known, started=started)


def stay(session: str, seconds: float, machine: str, age: float, at: float, *, over: bool = True) -> Stay:
    return Stay(session, seconds, over, over, modified=at, machine=machine, age=age)


def test_runs_that_nobody_disturbed_say_how_long_one_takes() -> None:
    found = [row(seconds=60), row(seconds=90, attempt=3), row("failed", 5), row("running", 7)]
    assert history.lengths(found) == (60,)
    assert history.lengths(found[1:]) == (90,)  # better than nothing
    assert history.lengths(found[2:]) == ()


def test_gaps_are_between_runs_of_one_machine_without_idle_time() -> None:
    found = [row(seconds=60, started=100), row(seconds=60, started=163), row(seconds=9, started=900)]
    found += [
        row(seconds=60, started=161, host="b"),
        row(seconds=60, started=200, host="b"),
    ]  # at the same time
    assert history.gaps(found) == (3,)
    assert history.gaps([row(started=100), row(started=159.5)]) == (0,)  # its end was still being written
    assert history.gaps([row(started=100), row("failed", 20, started=165), row(started=190)]) == (5, 5)


def test_attempts_of_disturbed_runs_are_nobodys_pause() -> None:
    found = [row(started=100), row(started=205), row(started=267)]  # 45 seconds in between, then 2
    assert history.gaps(found) == (45, 2)
    cut = Try(1, host="b", started=20, ended=160, outcome="lost", seconds=100)
    again = Try(2, host="a", started=162, ended=202, outcome="done", seconds=40)
    assert history.gaps(found, [cut, again]) == (2, 3, 2)
    assert history.gaps(found, [cut, again], since=161) == (3, 2)


def test_new_machine_of_an_old_name_had_no_pause() -> None:
    cut = Try(1, host="a", started=163, ended=260, outcome="queued", seconds=7)
    assert history.gaps([row(started=100), row(started=215)], [cut]) == (3,)


def test_pauses_between_runs_are_read_from_their_logs() -> None:
    store, job = MemoryStore(), Job("s", ("x",), runs=tuple({"i": i} for i in range(3)))
    sweeps.submit(store, job)
    for index, ends in ((0, ("done",)), (1, ("queued", "done")), (2, ("done",))):
        for then in ends:
            key = RunKey("s", job.run_id(index))
            facts = {"host": "h"}
            attempt = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("a", facts=facts))
            assert attempt is not None
            if then == "queued":
                attempt.release(then=then, seconds=0.001)
            else:
                attempt.end(then, attempts=len(ends), host="h", seconds=0.001, started=time.time())
    known = history.of_runs(store, ["s"])
    assert known.lengths is not None and len(known.lengths.seen) == 2
    assert known.gaps is not None and len(known.gaps.seen) == 2  # 0 → 1, 1's second attempt → 2


def test_each_machine_beyond_the_workers_came_in_anothers_place() -> None:
    stays = [
        stay("s1", 3000, "m1", 3070, 4100),
        stay("s2", 7000, "m2", 7060, 8120),
        stay("s3", 3500, "m3", 3590, 8130),
        stay("s4", 100, "m3", 3700, 8240),  # a second worker on the same machine
    ]
    found = history.launch(LAUNCH, stays, 8300.0, 9000.0, TIMING)
    assert (found.losses, found.seconds) == (1, 3070 + 7060 + 3700)
    assert found.boots == (70, 60, 90) and found.comes == (30, 60) and found.parts == (60,)


def test_silent_worker_on_a_machine_that_stays_was_lost() -> None:
    stays = [Stay("s1", 500, over=True), Stay("s2", 400, modified=100.0), Stay("s3", 900, modified=9990.0)]
    found = history.launch(LAUNCH, stays, None, 10_000.0, TIMING)
    assert (found.losses, found.seconds) == (1, 1800)


def test_a_rate_needs_an_hour_of_machines_behind_it() -> None:
    assert Launches(3599, 1).rate is None
    known = Launches(7200, 3).rate
    assert (
        known is not None and known.hazard == pytest.approx(3 / 7200) and known.said == "3 in 2h of machines"
    )


def test_all_launches_of_a_fleet_count_except_hand_work() -> None:
    store = MemoryStore()
    for number in (1, 2, 3):
        launch = Generation("burst", number, launch="x", workers=1, by_hand=number == 3)
        assert launches.begin(store, launch)
        launches.note(
            store, "burst", number, Stay(f"s{number}", 1000, over=True, machine=f"m{number}", age=1060)
        )
    found = history.of_fleet(store, "burst", 0.0, TIMING)
    assert (found.seconds, found.losses, found.boots) == (2120, 0, (60, 60))
    assert history.of_fleet(store, "other", 0.0, TIMING) == Launches()
    assert history.of_runs(store, ["nothing"]) == history.Known()


def test_rate_from_many_runs_is_surer_than_a_guess() -> None:
    few, many = VaryingSeconds((50.0, 100.0)), VaryingSeconds((50.0, 100.0) * 200)
    assert doubt(VaryingSeconds((), 60, 60)) == 0.05
    assert doubt(few) > 0.3 > 0.05 > doubt(many) >= 0.02
