"""What sweeps have cost, from launches and ledger."""

from __future__ import annotations

import pytest

from hostler.records import trash
from hostler.records.launch import costs, launches, ledger, settlement
from hostler.records.launch.costs import SweepCost
from hostler.records.launch.launches import Generation, Stay
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Budget, Job
from hostler.store.memory import MemoryStore

TIMING = Timing(account=30, cap_margin=180)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    store = MemoryStore(clock=clock)
    submit(store)
    return store


def submit(store: MemoryStore, cost: float | None = 20.0) -> None:
    assert sweeps.submit(store, Job(name="s", command=("x",), budget=Budget(cost=cost)))


def launch(store: MemoryStore, clock: Clock, *, reserve: float | None = 10.0, number: int = 1) -> None:
    token = f"l{number}"
    if reserve is not None:
        assert ledger.reserve(store, "s", 20, fleet="f", generation=number, launch=token, most=reserve)
    held = {} if reserve is None else {"s": reserve}
    launches.begin(
        store,
        Generation(
            "f",
            number,
            token,
            workers=1,
            price=3.6,
            began=clock.now,
            sweeps=("s",),
            reserved=held,
            counted=True,
        ),
    )


def note(
    store: MemoryStore, seconds: float, *, over: bool = False, used: float = 0.0, number: int = 1
) -> None:
    launches.note(store, "f", number, Stay(f"w{number}", seconds, over, over, used))


def of_sweep(store: MemoryStore, budget: float | None = 20.0) -> SweepCost | None:
    return costs.of_sweep(store, "s", budget, costs.spends(store, TIMING))


def test_spend_grows_while_workers_live_and_the_rest_stays_reserved(store: MemoryStore, clock: Clock) -> None:
    launch(store, clock)
    note(store, 1000)
    clock.now += 20
    assert of_sweep(store) == SweepCost("s", pytest.approx(1.02), pytest.approx(8.98), 20.0, 10.0)


def test_after_the_end_what_was_not_spent_is_left(store: MemoryStore, clock: Clock) -> None:
    launch(store, clock)
    note(store, 1000, over=True, used=0.75)
    settlement.leave(store, "f", 1, TIMING)
    assert of_sweep(store) == SweepCost("s", 1.0, 0, 20.0, 19.0, 1.0)
    [spend] = costs.spends(store, TIMING)
    assert (spend.cost, spend.used, spend.over, spend.working) == (1.0, 0.75, True, 0)


def test_a_sweep_without_price_and_budget_has_no_cost(store: MemoryStore) -> None:
    assert of_sweep(store, None) is None
    assert of_sweep(store) == SweepCost("s", 0, 0, 20.0, 20.0)


def test_new_sweep_of_a_name_begins_with_its_whole_budget(store: MemoryStore, clock: Clock) -> None:
    launch(store, clock)
    note(store, 1000, over=True)
    settlement.leave(store, "f", 1, TIMING)
    launch(store, clock, reserve=None, number=2)
    note(store, 1000, over=True, number=2)
    trash.delete_sweep(store, "s")
    clock.now += 100
    submit(store)
    settlement.charge_unreserved(store, "s", TIMING)
    assert of_sweep(store) == SweepCost("s", 0, 0, 20.0, 20.0)


def test_cut_off_deletion_leaves_a_ledger_without_gaps(store: MemoryStore, clock: Clock) -> None:
    for number in (1, 2, 3):
        launch(store, clock, reserve=2.0, number=number)
    deleted = 0

    def die(operation: str, key: str) -> None:
        nonlocal deleted
        if operation == "delete" and key.startswith("ledger/"):
            deleted += 1
            if deleted == 2:
                raise RuntimeError("killed")

    store.before = die
    with pytest.raises(RuntimeError):
        trash.delete_sweep(store, "s")
    store.before = None
    assert ledger.read(store, "s").committed == 4
