"""A worker's notes for its launch, and its deadline."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import product

import pytest

from hostler.errors import StoreUnreachable
from hostler.records.launch import launches, ledger, settlement
from hostler.records.launch.launches import Generation
from hostler.records.run.log import CAP
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker.launch_membership import Membership, lead
from hostler.worker.run.conclude import PREEMPTED
from interleaving import interleaved

TIMING = Timing(account=3600, grace=30, cap_margin=180)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(clock=lambda: 1000.0)
    assert ledger.reserve(store, "s", 10, fleet="f", generation=1, launch="l")
    launches.begin(
        store, Generation("f", 1, launch="l", workers=1, price=3.6, reserved={"s": 10.0}, counted=True)
    )
    return store


def presence(store: MemoryStore, clock: Clock, name: str = "f/1") -> Membership:
    return Membership(store, name, "here-1", TIMING, clock)


def test_the_last_worker_notes_its_time_and_returns_the_money(store: MemoryStore) -> None:
    clock = Clock()
    here = presence(store, clock)
    assert here.begin(None)
    assert here.price == 3.6
    here.keep(lambda: None, lambda: 0.75)
    clock.now = 1000
    here.end(final=True)
    [stay] = launches.stays(store, "f", 1)
    assert (stay.seconds, stay.over, stay.final, stay.used) == (1000, True, True, 0.75)
    assert ledger.read(store, "s").left(10) == pytest.approx(9)


def test_worker_with_a_price_of_its_own_costs_that(store: MemoryStore) -> None:
    clock = Clock()
    here = Membership(store, "f/1", "here-1", TIMING, clock, machine=("vm", 500.0), price=0.36)
    assert here.begin(None) and here.price == 0.36
    clock.now = 500
    here.end(final=True)
    [stay] = launches.stays(store, "f", 1)
    assert (stay.price, stay.machine, stay.age) == (0.36, "vm", 1000)
    one = launches.read(store, "f", 1)
    assert one is not None
    assert settlement.look(store, one, 1000.0, TIMING).cost == pytest.approx(0.1)  # a tenth of its launch's
    assert ledger.read(store, "s").left(10) <= 9  # the budget counts with the launch's price


def test_a_worker_of_a_launch_that_is_over_takes_nothing(store: MemoryStore) -> None:
    launches.close(store, "f", 1)
    assert not presence(store, Clock()).begin(None)
    assert len(launches.stays(store, "f", 1)) == 1  # seen by whoever looks


def test_a_worker_that_starts_after_its_deadline_takes_nothing(store: MemoryStore) -> None:
    assert not presence(store, Clock()).begin(1000.0)
    assert presence(store, Clock()).begin(1001.0)


def test_it_is_told_to_save_before_the_deadline(store: MemoryStore) -> None:
    here, told = presence(store, Clock(), ""), threading.Event()
    assert here.begin(1000.2)
    here.keep(told.set)
    assert told.wait(10)


def test_time_to_save_is_at_most_a_quarter() -> None:
    assert lead(3600, TIMING) == 60
    assert lead(40, TIMING) == 10


def test_a_notice_near_the_deadline_is_the_cap(store: MemoryStore) -> None:
    clock = Clock()
    here = presence(store, clock)
    assert here.noticed(PREEMPTED) == PREEMPTED
    here.begin(1000.0 + 3600)
    assert here.noticed(PREEMPTED) == PREEMPTED
    clock.now = 3600 - 150
    assert here.noticed(PREEMPTED) == CAP


def test_a_worker_that_nobody_launched_writes_nothing() -> None:
    store = MemoryStore()
    here = presence(store, Clock(), "")
    assert here.begin(None)
    here.keep(lambda: None)
    here.end(final=True)
    assert list(store.list("")) == []


def test_notes_go_on_while_the_store_does_not_answer(store: MemoryStore) -> None:
    here = Membership(store, "f/1", "here-1", replace(TIMING, account=0.01), time.monotonic)
    assert here.begin(None)
    lost = threading.Event()

    def fail(operation: str, key: str) -> None:
        lost.set()
        raise StoreUnreachable("no answer")

    store.before = fail
    assert lost.wait(60)
    store.before = None
    here.end(final=True)
    assert launches.stays(store, "f", 1)[0].over


def test_worker_joining_during_the_settlement_is_counted_or_leaves() -> None:
    seen, timing = set(), replace(TIMING, account=30)
    for first, then in product(range(5), range(40)):  # requests of the worker, then of who settles
        now = [1000.0]
        store = MemoryStore(clock=lambda now=now: now[0])  # type: ignore[misc]
        assert ledger.reserve(store, "s", 10, fleet="f", generation=1, launch="l")
        one = Generation("f", 1, "l", workers=1, price=3.6, began=1000.0, reserved={"s": 10.0}, counted=True)
        launches.begin(store, one)
        now[0] = 9000.0  # a launcher that took long: its engine lists nobody
        here, began = presence(store, Clock()), list[bool]()

        def settle(store: MemoryStore = store) -> None:
            settlement.close_silent(store, "f", timing)
            settlement.settle_sweep(store, "s", timing)

        def begin(here: Membership = here, began: list[bool] = began) -> None:
            began.append(here.begin(None))

        interleaved(store, [begin, settle], [0] * first + [1] * then + [0] * 20)
        returned = not ledger.read(store, "s").open
        assert not (began[0] and returned), "it works on money that went back"
        seen.add((began[0], returned))
    assert seen == {(True, False), (False, True), (False, False)}


def test_note_says_how_old_a_billed_machine_is(store: MemoryStore) -> None:
    clock = Clock()
    here = Membership(store, "f/1", "here-1", TIMING, clock, machine=("7", 40.0))
    assert here.begin(None)
    clock.now += 5
    here.end(final=True)
    [stay] = launches.stays(store, "f", 1)
    assert (stay.machine, stay.age, stay.seconds) == ("7", 45.0, 5.0)
