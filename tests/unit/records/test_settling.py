"""What launches have spent, and when the rest goes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.records.launch import closing, costs, launches, ledger, settlement
from hostler.records.launch.launches import Generation, Stay
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore

TIMING = Timing(cap_margin=180, account=30)
ONE = Generation(
    "f", 1, launch="l", workers=2, price=3.6, began=1000.0, sweeps=("s",), reserved={"s": 10.0}, counted=True
)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


def launched(store: MemoryStore, one: Generation = ONE) -> None:
    held = ledger.reserve(store, "s", 20, fleet=one.fleet, generation=one.number, launch=one.launch, most=10)
    assert held
    assert launches.begin(store, one)


def note(store: MemoryStore, session: str, seconds: float, *, over: bool = True, final: bool = True) -> None:
    launches.note(store, "f", 1, Stay(session, seconds, over, final))


def left(store: MemoryStore) -> float:
    return ledger.read(store, "s").left(20)


def test_the_last_worker_to_leave_returns_what_was_not_spent(store: MemoryStore, clock: Clock) -> None:
    launched(store)
    note(store, "a", 1000)
    settlement.leave(store, "f", 1, TIMING)
    assert left(store) == 10  # another is still there, or will be
    note(store, "b", 500)
    settlement.leave(store, "f", 1, TIMING)
    assert left(store) == pytest.approx(20 - 1.5)
    assert launches.gone_at(store, "f", 1) == clock.now


def test_a_worker_that_was_killed_and_restarted_counts_with_both(store: MemoryStore, clock: Clock) -> None:
    launched(store)
    note(store, "a", 100, over=False, final=False)
    clock.now += 1000
    note(store, "b", 1000)
    note(store, "c", 1000)
    settlement.leave(store, "f", 1, TIMING)
    assert left(store) == pytest.approx(20 - 3.6 * (100 + 30 + 2000) / 3600)


def test_while_somebody_is_there_nothing_goes_back(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, deadline=1500.0))
    note(store, "a", 10, over=False, final=False)
    launches.close(store, "f", 1)
    clock.now = 1000 + 3 * 30
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 10
    clock.now += 1
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == pytest.approx(20 - 3.6 * 40 / 3600)


def test_after_its_deadline_and_the_margin_a_launch_is_over(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, deadline=1500.0))
    clock.now = 1500 + 179
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 10
    clock.now += 1
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 20


def test_billed_machines_count_at_full_size_until_they_are_gone(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, billed=True, counted=False, deadline=5000.0))
    note(store, "a", 10)
    clock.now = 2000
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 10  # nobody has listed them
    launches.close(store, "f", 1)
    clock.now = 9000
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == pytest.approx(20 - 2 * 3.6 * (1000 + 180) / 3600)


def test_silent_billed_machines_are_charged_to_the_deadline(store: MemoryStore, clock: Clock) -> None:
    deadline = 1000 + 10 / 7.2 * 3600 - 180
    launched(store, replace(ONE, billed=True, counted=False, deadline=deadline))
    clock.now = deadline + 1e6
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == pytest.approx(10)


def test_a_reservation_whose_launcher_died_goes_back_after_a_lease(store: MemoryStore, clock: Clock) -> None:
    assert ledger.reserve(store, "s", 20, fleet="f", generation=1, launch="l")
    clock.now += 59
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 0
    clock.now += 2
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 20
    assert not launches.begin(store, ONE)  # the launcher was only slow: it may not start on that money


def test_number_of_another_launch_does_not_use_this_reservation(store: MemoryStore) -> None:
    assert ledger.reserve(store, "s", 20, fleet="f", generation=1, launch="mine")
    assert launches.begin(store, replace(ONE, launch="theirs"))
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == 20


def test_sweeps_bear_a_launch_as_they_reserved(store: MemoryStore) -> None:
    both = replace(ONE, sweeps=("s", "t"), reserved={"s": 9.0, "t": 3.0})
    assert settlement.share(both, "s") == 0.75
    assert settlement.share(replace(both, reserved={}), "t") == 0.5
    assert settlement.share(replace(both, reserved={}), "u") == 0


def test_a_launch_without_reservation_is_charged_when_it_is_over(store: MemoryStore, clock: Clock) -> None:
    assert launches.begin(store, replace(ONE, reserved={}))
    settlement.charge_unreserved(store, "s", TIMING)
    assert left(store) == 20
    note(store, "a", 1000)
    note(store, "b", 1000)
    for _ in range(2):
        settlement.charge_unreserved(store, "s", TIMING)
    assert left(store) == pytest.approx(18)


def test_unseen_launches_are_closed_when_the_engine_lists_none(store: MemoryStore, clock: Clock) -> None:
    launched(store)
    settlement.close_silent(store, "f", TIMING)
    assert launches.gone_at(store, "f", 1) is None  # it may be about to start
    clock.now += 91
    note(store, "a", 91, over=False, final=False)
    settlement.close_silent(store, "f", TIMING)
    assert launches.gone_at(store, "f", 1) is None
    clock.now += 91
    settlement.close_silent(store, "f", TIMING)
    assert launches.gone_at(store, "f", 1) == clock.now
    settlement.settle_sweep(store, "s", TIMING)
    assert left(store) == pytest.approx(20 - 3.6 * (91 + 30) / 3600)


def test_billed_machines_without_reservation_are_charged_at_full_size(
    store: MemoryStore, clock: Clock
) -> None:
    assert launches.begin(store, replace(ONE, reserved={}, billed=True, counted=False))
    note(store, "a", 10)
    clock.now = 2000.0
    launches.close(store, "f", 1)
    settlement.charge_unreserved(store, "s", TIMING)
    assert left(store) == pytest.approx(20 - 7.2 * (1000 + 180) / 3600)


def test_sweep_that_joined_a_launch_later_bears_its_part(store: MemoryStore, clock: Clock) -> None:
    assert launches.begin(store, replace(ONE, reserved={}, billed=True, counted=False))
    clock.now = 1500.0
    assert sweeps.submit(store, Job(name="later", command=("true",)))
    assert closing.serve(store, "f", 1, ["s", "later"])
    note(store, "a", 1000)
    found = costs.spends(store, TIMING)
    later = costs.of_sweep(store, "later", None, found)
    assert later and later.spent == found[0].of("s") == pytest.approx(0.5)


def test_amount_against_the_budget_is_shown_beside_workers_notes(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, billed=True, counted=False))
    note(store, "a", 10)
    settlement.close(store, ONE, TIMING)
    found = costs.of_sweep(store, "s", 20, costs.spends(store, TIMING))
    assert found and found.spent == pytest.approx(0.01)
    assert found.counted == pytest.approx(7.2 * 180 / 3600) and found.left == pytest.approx(
        20 - found.counted
    )


def test_machine_costs_from_its_creation_for_any_number_of_workers() -> None:
    first = Stay("a", 50.0, over=True, machine="7", age=90.0)
    second = Stay("b", 20.0, over=True, machine="7", age=130.0)
    other = Stay("c", 10.0, over=True, machine="8", age=45.0)
    assert settlement.seconds([first, second, other], 0.0, TIMING) == 130.0 + 45.0
    silent = replace(other, over=False, modified=-1000.0)
    assert settlement.seconds([silent], 0.0, TIMING) == 45.0 + TIMING.account


def test_failed_launch_costs_its_machines_while_somebody_watched(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, billed=True, counted=False))
    clock.now += 600
    settlement.close(store, ONE, TIMING, watched=100.0)
    assert left(store) == pytest.approx(20 - 3.6 * 100 / 3600)
    found = settlement.look(store, ONE, clock.now, TIMING)
    assert found.over and found.cost == pytest.approx(0.1)


def test_one_of_which_no_machine_ever_came_costs_nothing(store: MemoryStore, clock: Clock) -> None:
    launched(store, replace(ONE, billed=True, counted=False))
    clock.now += 600
    settlement.close(store, ONE, TIMING, watched=0.0)
    assert left(store) == 20
