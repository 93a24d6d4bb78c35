"""Fleets and runs on the virtual clock, in weathers that are known to the second."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hostler.backends.capacity import MachineGroup
from hostler.records.run.state import Tally, count
from hostler.settings import Timing
from hostler.simulate.outcome import SimulationOutcome
from hostler.simulate.rates import rate
from hostler.simulate.scene import Scene
from hostler.simulate.stock import Outage
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.trace import MachineLoss, MachineStart, Trace
from hostler.simulate.weather import AsItWas, ByChance, Habits
from hostler.simulate.world import World
from hostler.spec.job import Job
from hostler.worker.launch_membership import lead
from hostler.worker.run.conclude import exhausted

HOUR = 3600.0
TIMING = Timing()
JOB = Job("sweep", ("python", "train.py"))


def always(seconds: float) -> VaryingSeconds:
    return VaryingSeconds((), seconds, seconds)


def scene(workers: int = 1, runs: int = 1, length: float = HOUR, every: float = 600, **more: Any) -> Scene:
    groups = more.pop("groups", (MachineGroup("r", "g", ("z",), workers),))
    prices = {(zone, spot): 1.0 for group in groups for zone in group.zones for spot in (True, False)}
    made = Scene("fleet", JOB, runs, workers, groups, always(length), every, TIMING, prices=prices)
    return replace(made, **more)


def play(
    found: Scene,
    losses: Sequence[MachineLoss] = (),
    outages: Sequence[Outage] = (),
    habits: Habits | None = None,
) -> SimulationOutcome:
    trace = Trace(losses=tuple(losses), outages=tuple(outages))
    return World(found, AsItWas(trace, habits or Habits(), random.Random(0)), 1).run()


def chances(found: Scene, often: str, notice: float, seeds: int = 5) -> list[SimulationOutcome]:
    habits = Habits(always(20), always(60), always(30), notice)
    return [
        World(found, ByChance(habits, rate(often), {}, random.Random(2 * n)), 2 * n + 1).run()
        for n in range(seeds)
    ]


def test_one_run_on_one_machine_costs_from_boot_to_end() -> None:
    done = play(scene(), habits=Habits(always(20), always(60), always(30)))
    assert (done.seconds, done.gone) == (20 + 60 + HOUR, 20 + 60 + HOUR + 30)
    assert done.cost == pytest.approx((60 + HOUR + 30) / HOUR) and done.done == 1


def test_checkpoints_cost_what_a_save_holds_the_training_up() -> None:
    assert play(scene(save=10)).seconds == HOUR + 5 * 10  # none at the very end


def test_long_checkpoint_does_not_keep_machines_beyond_their_deadline() -> None:
    done = play(scene(runs=5, lasts=2.5 * HOUR, save=2 * HOUR, every=HOUR / 2))
    assert done.capped and done.gone == 2.5 * HOUR and done.cost == pytest.approx(2.5)


def test_many_runs_go_over_the_machines_one_after_the_other() -> None:
    done = play(scene(workers=4, runs=10, gap=always(5)))
    assert done.seconds == 3 * (HOUR + 5)
    assert done.cost == pytest.approx(10 + 4 * TIMING.beat / HOUR, rel=0.01)  # two leave after two rounds


def test_machines_with_several_seats_take_several_runs_at_once() -> None:
    assert play(scene(workers=2, runs=8, seats=4)).seconds == HOUR


def test_cut_off_machine_loses_its_work_since_the_last_checkpoint() -> None:
    done = play(scene(every=600), [MachineLoss(0, 1500, 1500, notice=False)])
    # 300 of 1500 seconds are done again, by the one in its place, at once
    assert done.repeated == 300 and done.cut == done.losses == 1
    assert done.seconds == 1500 + (HOUR - 1200)


def test_busy_worker_takes_a_lost_run_before_fresh_ones() -> None:
    # the second machine works for an hour, takes what the first has lost, and only then the third run
    gone = [Outage("z", 100, 100 * HOUR)]
    done = play(scene(workers=2, runs=3, every=600), [MachineLoss(0, 1500, 1500, notice=False)], gone)
    assert done.done == 3 and done.seconds == HOUR + (HOUR - 1200) + HOUR


def test_machine_with_notice_saves_and_repeats_nothing() -> None:
    done = play(scene(save=10, every=2 * HOUR), [MachineLoss(0, 1500, 1530)])
    assert done.repeated == 0 and done.cut == 0 and done.losses == 1
    assert done.seconds == 1530 + 10 + HOUR - 1500


def test_a_notice_that_is_shorter_than_a_save_is_none() -> None:
    done = play(scene(save=60, every=600), [MachineLoss(0, 1500, 1530)])
    assert done.cut == 1 and done.repeated > 0


def test_run_lost_too_often_without_progress_fails() -> None:
    tally, times = Tally(), 0
    while not exhausted(tally, JOB):
        tally = count(tally, {"counts": "lost", "progress": False})
        times += 1
    spans = [(n + 1) * 1000.0 for n in range(times)]
    done = play(scene(every=2 * HOUR), [MachineLoss(0, at, at, notice=False) for at in spans])
    assert done.failed == 1 and done.done == 0
    spared = play(scene(every=2 * HOUR), [MachineLoss(0, at, at, notice=False) for at in spans[:-1]])
    assert spared.failed == 0 and spared.done == 1


def test_progress_wipes_the_slate_clean() -> None:
    losses = [MachineLoss(0, (n + 1) * 1000.0, (n + 1) * 1000.0, notice=False) for n in range(40)]
    done = play(scene(every=600, length=10 * HOUR), losses)
    assert done.done == 1 and done.losses == 40


def test_lost_run_is_not_left_behind_by_idle_machines() -> None:
    done = play(scene(workers=3, runs=3), [MachineLoss(0, HOUR - 10, HOUR - 10, notice=False)])
    assert done.done == 3 and done.left == 0


def test_sweeps_parallel_limit_holds_and_the_others_wait() -> None:
    done = play(scene(workers=4, runs=4, job=replace(JOB, parallel=1)))
    assert 4 * HOUR <= done.seconds <= 4 * HOUR + 3 * TIMING.wait_max
    assert done.cost == pytest.approx(13, rel=0.01)  # who waits for a turn stays while anything is queued


def test_cap_ends_everything_and_reports_saved_and_undone_work() -> None:
    done = play(scene(runs=5, lasts=2.5 * HOUR))
    assert done.capped and done.done == 2 and done.left == 3
    assert done.gone == 2.5 * HOUR - lead(2.5 * HOUR, TIMING)
    assert done.seconds == done.gone


def test_a_zone_that_is_out_is_left_for_the_next() -> None:
    found = scene(
        groups=(MachineGroup("r", "g", ("a", "b"), 1),), prices={("a", True): 1.0, ("b", True): 7.0}
    )
    assert play(found).cost == pytest.approx(1)
    assert play(found, outages=[Outage("a", 0, 10 * HOUR)]).cost == pytest.approx(7)


def test_exhausted_region_is_left_for_another_after_a_while() -> None:
    groups = (MachineGroup("r", "g", ("a",), 1), MachineGroup("s", "g", ("b",), 1))
    done = play(scene(workers=2, runs=2, groups=groups), outages=[Outage("a", 0, 100 * HOUR)])
    assert done.done == 2
    assert TIMING.stockout <= done.seconds - HOUR <= TIMING.stockout + 2


def test_exhausted_spot_becomes_on_demand_and_is_not_preempted() -> None:
    spare = (MachineGroup("r", "g-od", ("a",), 0, spot=False),)
    found = scene(
        groups=(MachineGroup("r", "g", ("a",), 1),), spare=spare, prices={("a", True): 1.0, ("a", False): 3.0}
    )
    windows = {"a": [Outage("a", 0, 100 * HOUR)]}
    done = World(found, ByChance(Habits(), rate("99%/h"), windows, random.Random(0)), 1).run()
    assert done.done == 1 and done.losses == 0 and done.cost == pytest.approx(3)


def test_launch_that_gets_nothing_is_given_up_within_a_bound() -> None:
    done = play(scene(), outages=[Outage("z", 0, 100 * HOUR)])
    assert "no VM came" in done.given_up and done.left == 1 and done.cost == 0


def test_irreplaceable_machine_comes_when_its_zone_has_stock() -> None:
    done = play(scene(), [MachineLoss(0, 1200, 1200, notice=False)], [Outage("z", 100, 9000)])
    assert done.done == 1 and 9000 + HOUR - 1200 <= done.seconds <= 9100 + HOUR - 1200 + TIMING.lease


def test_queue_tasks_end_one_run_each_and_another_comes() -> None:
    habits = Habits(always(0), always(100), always(0))
    done = play(scene(workers=2, runs=6, each=1, replaced=True), habits=habits)
    assert done.done == 6 and done.seconds == 3 * (HOUR + 100)


def test_workers_with_a_run_limit_leave_the_rest() -> None:
    done = play(scene(workers=2, runs=6, each=2))
    assert done.done == 4 and done.left == 2


def test_engines_time_limit_is_a_preemption_with_notice() -> None:
    done = play(scene(length=10 * HOUR, limit=4 * HOUR, save=5))
    assert done.done == 1 and done.losses == 2 and done.cut == 0


def test_a_rate_at_which_nothing_ever_ends_is_recognised() -> None:
    found = chances(scene(workers=3, runs=3), "99.9%/10s", notice=30, seeds=1)
    assert found[0].endless and found[0].done == 0


def test_repeated_work_is_half_an_interval_for_each_loss() -> None:
    found = chances(scene(workers=20, runs=400, every=1200), "20%/h", notice=0)
    losses, repeated = sum(one.cut for one in found), sum(one.repeated for one in found)
    assert losses > 200 and repeated / losses == pytest.approx(600, rel=0.15)


def test_machines_are_lost_as_often_as_the_rate_says() -> None:
    found = chances(scene(workers=20, runs=400), "20%/h", notice=30)
    hours = sum(one.machine_seconds for one in found) / HOUR
    assert sum(one.losses for one in found) / hours == pytest.approx(0.2231, rel=0.1)


def test_the_same_seed_is_the_same_luck() -> None:
    found = [chances(scene(workers=5, runs=30), "20%/h", notice=0, seeds=2) for _ in range(2)]
    assert found[0] == found[1] and found[0][0] != found[0][1]


def test_every_run_ends_somewhere_whatever_the_weather() -> None:
    chance = random.Random(11)
    for _ in range(60):
        workers, runs = chance.randint(1, 6), chance.randint(1, 30)
        found = scene(
            workers, runs, seats=chance.randint(1, 3), every=chance.choice([60.0, 600.0, 4000.0]), save=5.0
        )
        often = f"{chance.randint(1, 95)}%/h"
        for one in chances(found, often, notice=chance.choice([0.0, 30.0]), seeds=1):
            assert one.done + one.failed == runs and one.left == 0 and not one.endless
            assert one.machine_seconds >= one.done * HOUR / found.seats
            assert one.cost == pytest.approx(one.machine_seconds / HOUR)


def test_starts_of_a_trace_are_used_in_their_order() -> None:
    trace = Trace(
        starts=(MachineStart(0, 0, 50), MachineStart(0, 2000, 70)),
        losses=(MachineLoss(0, 1000, 1000, notice=False),),
    )
    weather = AsItWas(trace, Habits(boots=always(5)), random.Random(0))
    assert [weather.boots(0), weather.boots(0), weather.boots(0)] == [50, 70, 5]


def test_machine_that_never_worked_took_longer_than_it_lived() -> None:
    starts = (MachineStart(0, 0), MachineStart(0, 110, 70))
    trace = Trace(starts=starts, losses=(MachineLoss(0, 100, 100, notice=False),))
    weather = AsItWas(trace, Habits(boots=always(5)), random.Random(0))
    assert [weather.boots(0), weather.boots(0)] == [100, 70]


@pytest.mark.parametrize(("often", "most"), [("5%/h", 1.04), ("20%/h", 1.06)])
def test_hundred_runs_cost_little_more_than_their_training(often: str, most: float) -> None:
    found = scene(workers=25, runs=100, length=2400, every=300, save=5.0, gap=always(1))
    habits = Habits(always(20), always(105), always(30), 30)
    done = [
        World(found, ByChance(habits, rate(often), {}, random.Random(2 * n)), 2 * n + 1).run()
        for n in range(10)
    ]
    assert sum(one.cost for one in done) / len(done) <= most * 100 * 2400 / HOUR
