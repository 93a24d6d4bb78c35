"""A launch's money: reserved before it starts, and made into one deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.backends.prices import FleetPrice
from hostler.errors import UsageError
from hostler.money import funding
from hostler.money.funding import until
from hostler.money.tariff import Asked, Funded
from hostler.records.launch import launches, ledger, settlement
from hostler.records.launch.launches import Stay
from hostler.records.sweep import deadline as hours
from hostler.settings import Timing
from hostler.spec.job import Budget, Job
from hostler.spec.project import Fleet
from hostler.store.memory import MemoryStore
from interleaving import Killed, interleaved

TIMING = Timing(cap_margin=180, account=30)


class Clock:
    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


def job(name: str = "s", **budget: Any) -> Job:
    return Job(name=name, command=("x",), budget=Budget(**budget))


def asked(*jobs: Job, price: float | None = 5.0, workers: int = 2, name: str = "f", **fleet: Any) -> Asked:
    one = Fleet(name, "ssh", workers=workers, price=price, **fleet)
    return Asked(one, FleetPrice(workers, price), jobs or (job(cost=50),))


def fund(store: MemoryStore, what: Asked) -> Funded:
    return funding.fund(store, what, TIMING)


def test_a_cap_is_a_deadline_with_a_margin() -> None:
    assert until(0, 10, 5, None, 180) == 2 * 3600 - 180
    assert until(0, 10, 5, 1, 180) == 3600
    assert until(0, None, 5, 3, 180) == 3 * 3600
    assert until(0, 10, 0, None, 180) is None
    assert until(0, None, 5, None, 180) is None


def test_launch_reserves_the_rest_and_ends_when_spent(store: MemoryStore) -> None:
    found = fund(store, asked())
    assert found == Funded("f/1", 5000 + 5 * 3600 - 180, 5000, {"s": 50})
    one = launches.read(store, "f", 1)
    assert one and (one.deadline, one.hourly, one.sweeps) == (found.deadline, 10, ("s",))


def test_max_cost_and_max_hours_bound_what_is_reserved(store: MemoryStore) -> None:
    assert fund(store, asked(max_cost=20)).reserved == {"s": 20}
    second = fund(store, asked(max_hours=1.0))
    assert second.reserved == {"s": pytest.approx(10.5)}
    assert second.seconds == pytest.approx(3600)


def test_a_launch_for_a_moment_reserves_no_more_than_that(store: MemoryStore) -> None:
    found = fund(store, asked(max_hours=0.01))
    assert (found.seconds, found.reserved) == (pytest.approx(36), {"s": pytest.approx(10 * 216 / 3600)})


def test_a_fleet_s_own_cap_needs_no_budget(store: MemoryStore) -> None:
    found = fund(store, asked(job(), max_cost=10))
    assert (found.seconds, found.reserved) == (3600 - 180, {})
    assert not ledger.read(store, "s").reservations


def test_third_fleet_on_a_shared_budget_is_refused(store: MemoryStore) -> None:
    fund(store, asked(name="a", max_cost=30))
    assert fund(store, asked(name="b")).reserved == {"s": 20}
    with pytest.raises(UsageError, match="the budget of s is used up") as met:
        fund(store, asked(name="c"))
    assert "30 by a/1, 20 by b/1" in str(met.value)
    assert "allow more" in met.value.hint and "hostler cost s" in met.value.hint
    assert launches.of_fleet(store, "c") == []
    assert "hostler down a ends it" in met.value.hint


def test_what_an_ended_fleet_returned_is_for_the_next(store: MemoryStore, clock: Clock) -> None:
    fund(store, asked())
    for session in ("a", "b"):
        launches.note(store, "f", 1, Stay(session, 3600, over=True, final=True))
    clock.now += 3600
    assert fund(store, asked()).reserved == {"s": 40}


def test_later_launch_may_spend_the_raised_budget(store: MemoryStore, clock: Clock) -> None:
    found = fund(store, asked())
    assert found.deadline
    clock.now = found.deadline + 180
    for session in ("a", "b"):
        launches.note(store, "f", 1, Stay(session, 5 * 3600 - 180, over=True, final=True))
    with pytest.raises(UsageError, match="less than"):
        fund(store, asked())
    assert fund(store, asked(job(cost=80))).reserved == {"s": pytest.approx(30.5)}


def test_money_for_less_than_the_margin_is_refused(store: MemoryStore) -> None:
    with pytest.raises(UsageError, match=r"what is left of the budget of s, 0\.4, is less than 3m 45s of f"):
        fund(store, asked(job(cost=0.4)))
    with pytest.raises(UsageError, match=r"max_cost 0\.4 is less than"):
        fund(store, asked(job(), max_cost=0.4))
    assert not ledger.read(store, "s").reservations


@pytest.mark.parametrize("what", [asked(price=None), asked(job(), price=None, max_cost=5)])
def test_a_cap_that_nobody_can_keep_is_refused(store: MemoryStore, what: Asked) -> None:
    with pytest.raises(UsageError, match="cannot be enforced: the price of f is not known") as met:
        fund(store, what)
    assert "`price:`" in met.value.hint


def test_this_very_machine_without_a_price_has_no_cap(store: MemoryStore) -> None:
    assert fund(store, replace(asked(price=None), own=True)) == Funded()


def test_what_costs_nothing_reserves_nothing(store: MemoryStore) -> None:
    found = fund(store, asked(price=0.0))
    assert (found.deadline, found.reserved) == (None, {})


def test_a_launch_of_no_workers_asks_for_nothing(store: MemoryStore) -> None:
    assert fund(store, asked(workers=0)) == Funded()


def test_hours_of_a_sweep_are_a_deadline_too(store: MemoryStore, clock: Clock) -> None:
    assert fund(store, asked(job(hours=2), price=1.0)).seconds == 7200
    hours.begin(store, "s")
    clock.now += 3600
    assert fund(store, asked(job(hours=2), price=1.0)).seconds == 3600


def test_budget_hours_do_not_run_in_a_queue(store: MemoryStore) -> None:
    waits = replace(asked(job(hours=2), price=1.0), queued=True)
    assert fund(store, waits).deadline is None


def test_several_sweeps_each_bear_a_part(store: MemoryStore) -> None:
    both = (job("s", cost=50), job("t", cost=4))
    assert fund(store, asked(*both, max_cost=20)).reserved == {"s": 10, "t": 4}


def test_if_one_of_several_has_nothing_left_all_goes_back(store: MemoryStore) -> None:
    fund(store, asked(job("t", cost=4)))
    with pytest.raises(UsageError, match="budget of t"):
        fund(store, asked(job("s", cost=50), job("t", cost=4)))
    assert ledger.read(store, "s").committed == 0


def test_a_launch_that_could_not_be_started_gives_back_all(store: MemoryStore) -> None:
    found = fund(store, asked())
    funding.cancel(store, found, TIMING)
    assert ledger.read(store, "s").left(50) == 50
    assert launches.gone_at(store, "f", 1) is not None


def test_looking_ahead_reserves_nothing_and_says_the_same(store: MemoryStore) -> None:
    ahead = funding.foresee(store, asked(max_cost=20), TIMING, 5000)
    assert list(store.list("")) == [], "nothing is written"
    assert fund(store, asked(max_cost=20)) == ahead
    fund(store, asked())
    with pytest.raises(UsageError, match="used up"):
        funding.foresee(store, asked(), TIMING)


# A launcher that dies, and launchers that are slow.


def funded(store: MemoryStore) -> list[Funded]:
    """What may spend money: generations whose launcher won its number."""
    return [Funded(one.name, one.deadline, one.began, one.reserved) for one in launches.everywhere(store)]


def spendable(store: MemoryStore) -> float:
    return sum(one.reserved.get("s", 0.0) for one in funded(store))


def test_killed_launcher_leaves_no_money_locked_for_long() -> None:
    died = 0
    for n in range(1, 60):
        clock = Clock()
        store = MemoryStore(clock=clock)
        count = iter(range(1, 10_000))

        def die(operation: str, key: str, n: int = n, count: Any = count) -> None:
            if next(count) == n:
                raise Killed

        store.before = die
        try:
            fund(store, asked(max_cost=30))
        except Killed:
            died += 1
        store.before = None
        assert spendable(store) <= 50
        clock.now += 1000
        settlement.close_silent(store, "f", TIMING)  # the engine lists none
        found = fund(store, asked())
        assert found.reserved == {"s": 50}, n
    assert died > 5


@pytest.mark.parametrize("other", ["a", "b"])
def test_interleaved_launchers_spend_nothing_twice(
    other: str,
) -> None:
    for n in range(60):
        store = MemoryStore(clock=Clock())
        wishes = [asked(name="a", max_cost=30), asked(name=other, max_cost=30)]
        actors = [lambda what=what, store=store: fund(store, what) and None for what in wishes]
        interleaved(store, actors, [0] * n + [1] * 200, set())
        account = ledger.read(store, "s")
        assert sorted(one.cost for one in account.open) == [20, 30]
        assert spendable(store) == account.committed == 50
        assert len(funded(store)) == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=40, max_size=120),
    st.sets(st.integers(0, 2), max_size=2),
    st.lists(st.sampled_from([7.0, 20.0, None]), min_size=3, max_size=3),
)
def test_however_launchers_interleave_and_die_their_reservations_fit_the_budget(
    schedule: list[int], kill: set[int], caps: list[float | None]
) -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    # two of them for one fleet: both want the same number
    wishes = [asked(name=name, max_cost=cap) for name, cap in zip("aab", caps, strict=True)]
    actors = [lambda what=what: fund(store, what) and None for what in wishes]
    interleaved(store, actors, schedule, kill)
    assert spendable(store) <= 50
    assert ledger.read(store, "s").committed <= 50
    held = {(one.fleet, one.generation) for one in ledger.read(store, "s").open}
    assert {launches.named(one.name) for one in funded(store) if one.reserved} <= held
    clock.now += 1e6
    settlement.settle_sweep(store, "s", TIMING)
    assert ledger.read(store, "s").open == ()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=20, max_size=80))
def test_slow_launcher_and_voider_never_both_spend(schedule: list[int]) -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)

    def second() -> None:
        clock.now += 61  # a lease later the first one counts as dead, if it has no number yet
        fund(store, asked(name="b"))

    interleaved(store, [lambda: fund(store, asked(name="a")) and None, second], schedule, set())
    assert spendable(store) <= 50
    assert spendable(store) > 0


def machines(*jobs: Job, **fleet: Any) -> Asked:
    return replace(asked(*(jobs or (job(),)), **fleet), billed=True, lasts=24.0, longest=2880.0)


@pytest.mark.parametrize("cap", [{"max_hours": 1e9}, {"max_cost": 1e15, "max_hours": 1e300}])
def test_no_cap_exceeds_the_engines_longest_life(store: MemoryStore, cap: dict[str, float]) -> None:
    assert fund(store, machines(**cap)).seconds == 2880 * 3600
    assert fund(store, machines()).seconds == 24 * 3600


@pytest.mark.parametrize("act", [funding.fund, funding.foresee])
def test_machines_gone_before_they_work_are_refused(store: MemoryStore, act: Callable[..., Funded]) -> None:
    with pytest.raises(UsageError, match="gone after 1s, before its machines start") as refused:
        act(store, machines(options={"deadline": 1.0}), TIMING)
    assert refused.value.hint == "raise `deadline` or `max_hours` of the fleet"
    with pytest.raises(UsageError, match="gone after 3ms") as refused:
        act(store, machines(job(cost=50, hours=1e-6)), TIMING)
    assert "`budget: {hours: N}` in the file of s" in refused.value.hint
    assert not [*store.list("fleets/"), *store.list("ledger/")]
