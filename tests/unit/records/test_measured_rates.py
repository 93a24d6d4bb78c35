"""Steps a second after the warm-up, and what they cost."""

from __future__ import annotations

import random

import pytest

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import MeasuredRate, Speed, planned_steps, speed
from hostler.store.memory import MemoryStore


def points(times: list[float], first: int = 1) -> list[tuple[float, int]]:
    return [(time, first + n) for n, time in enumerate(times)]


def test_slow_first_steps_are_the_warm_up() -> None:
    slow, steady = [130.0, 140.0], [141.0 + n for n in range(20)]
    found = speed(points([*slow, *steady]), began=100.0)
    assert found is not None
    assert found.rate == pytest.approx(1.0) and found.warm == pytest.approx(140 - 100 - 2, abs=1.5)


def test_resumed_attempt_counts_its_own_steps_alone() -> None:
    found = speed(points([110.0 + 2 * n for n in range(10)], first=501), began=100.0, first=500)
    assert found is not None and found.rate == pytest.approx(0.5) and found.warm == pytest.approx(8.0)


def test_rate_that_changes_while_measured_is_told() -> None:
    slows = [(n * 1.0, n) for n in range(1, 61)] + [(60 + 4.0 * n, 60 + n) for n in range(1, 101)]
    soon, late = speed(slows[:85], 0.0), speed(slows, 0.0)
    assert soon is not None and soon.changed and soon.drift < 0.6
    assert late is not None and not late.changed  # what is new has lasted: it counts
    assert late.rate == pytest.approx(0.25, rel=0.03)
    calm = speed(slows[:60], 0.0)
    assert calm is not None and not calm.changed


def test_few_points_make_no_rate() -> None:
    assert speed(points([1.0, 2.0, 3.0]), began=0.0) is None
    assert speed([(1.0, 5)] * 20, began=0.0) is None  # the same step over and over


def test_few_points_that_never_come_evenly_make_a_rate() -> None:
    chance = random.Random(3)
    for _ in range(500):
        times = sorted(chance.uniform(0, 100) for _ in range(chance.randrange(4, 12)))
        found = speed(points(times), began=-1.0)
        assert found is not None and found.rate > 0 and found.drift > 0


def test_rate_is_right_though_steps_vary() -> None:
    chance, now, times = random.Random(1), 50.0, []
    for _ in range(200):
        now += chance.uniform(0.5, 1.5)
        times.append(now)
    found = speed(points(times), began=0.0)
    assert found is not None and found.rate == pytest.approx(1.0, rel=0.1)


def test_output_that_is_read_in_batches_makes_the_same_rate() -> None:
    """A worker on a busy machine reads several lines at once, and all of them have the time of that look."""
    for seed in range(50):
        chance, now, step, seen = random.Random(seed), 0.0, 0, list[tuple[float, int]]()
        while now < 12:
            now += chance.uniform(0.1, 2.0)
            printed = int(now * 4.0)
            seen += [(now, n) for n in range(step + 1, printed + 1)]
            step = printed
        found = speed(seen, began=0.0)
        assert found is not None and found.rate == pytest.approx(4.0, rel=0.15), (seed, found)


def test_cost_of_a_run_counts_warm_up_and_shared_machines() -> None:
    one = MeasuredRate("burst", rate=2.0, warm=100.0, steps=1000, seats=2, price=3.6)
    assert one.seconds == 600 and one.per_run == pytest.approx(0.3) and one.per_step == pytest.approx(0.00025)
    assert MeasuredRate("burst", rate=2.0).seconds is None and MeasuredRate("burst", rate=2.0).per_run is None


def test_mean_of_runs_side_by_side_is_taken() -> None:
    assert measured_rates.together([Speed(1.0, 4, 60), Speed(3.0, 2, 60)]) == Speed(2.0, 3, 120)
    assert measured_rates.together([]) is None


@pytest.mark.parametrize(
    ("params", "steps"),
    [
        ({"steps": 30}, 30),
        ({"epochs": 3.0}, 3),
        ({"lr": 1}, None),
        ({"steps": True}, None),
        ({"steps": "many"}, None),
    ],
)
def test_parameters_tell_the_steps_of_a_run(params: dict[str, object], steps: int | None) -> None:
    assert planned_steps(params) == steps


def test_newest_measurement_of_a_fleet_is_read_back() -> None:
    store = MemoryStore()
    assert measured_rates.read(store, "grid", "Burst") is None
    for rate in (1.0, 2.0):
        measured_rates.write(store, "grid", MeasuredRate("Burst", rate, steps=10, price=0.5, machine="big"))
    found = measured_rates.read(store, "grid", "Burst")
    assert found is not None and (found.fleet, found.rate, found.machine) == ("Burst", 2.0, "big")
    assert measured_rates.read(store, "grid", "burst") is None


@pytest.mark.parametrize("record", [{"rate": "fast"}, {}, {"rate": 1.0, "steps": "x"}])
def test_damaged_measurement_is_named(record: dict[str, object]) -> None:
    store = MemoryStore()
    store.put(layout.measured_rate("grid", "burst"), encode(record))
    with pytest.raises(DamagedError, match="rates/burst"):
        measured_rates.read(store, "grid", "burst")
