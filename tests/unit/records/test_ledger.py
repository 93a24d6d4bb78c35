"""The money of a sweep: reserved, returned, never more than the budget."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from hostler.records import layout
from hostler.records.launch import ledger
from hostler.records.launch.ledger import Account, Reservation, fold
from hostler.store import Store
from hostler.store.memory import MemoryStore

BUDGET = 10.0


def take(
    store: Store, generation: int, most: float | None = None, budget: float = BUDGET
) -> Reservation | None:
    return ledger.reserve(
        store, "s", budget, fleet="f", generation=generation, launch=f"l{generation}", most=most
    )


def test_a_reservation_takes_what_is_left_and_no_more(store: Store) -> None:
    first, second, third = take(store, 1, 7.0), take(store, 2, 7.0), take(store, 3, 7.0)
    assert first and first.cost == 7
    assert second and second.cost == 3
    assert third is None
    assert ledger.read(store, "s").left(BUDGET) == 0


def test_what_is_returned_can_be_reserved_again(store: Store) -> None:
    held = take(store, 1)
    assert held and held.cost == BUDGET
    ledger.give_back(store, "s", held.n, 4.5)
    again = take(store, 2)
    assert again and again.cost == 4.5
    assert ledger.read(store, "s").committed == BUDGET


def test_a_return_counts_once(store: Store) -> None:
    held = take(store, 1)
    assert held
    ledger.give_back(store, "s", held.n, 4)
    ledger.give_back(store, "s", held.n, 4)
    assert ledger.read(store, "s").left(BUDGET) == 4
    assert [entry.key for entry in store.list(layout.ledger("s"))] == [
        layout.ledger_entry("s", 1),
        layout.ledger_entry("s", 2),
    ]


def test_nobody_returns_more_than_was_reserved(store: Store) -> None:
    held = take(store, 1, 3.0)
    assert held
    ledger.give_back(store, "s", held.n, 99.0)
    assert ledger.read(store, "s").committed == 0


def test_less_than_is_of_use_is_not_reserved(store: Store) -> None:
    take(store, 1, 9.5)
    assert ledger.reserve(store, "s", BUDGET, fleet="f", generation=2, launch="x", least=1.0) is None
    assert ledger.read(store, "s").committed == 9.5


def test_a_budget_below_what_is_committed_leaves_nothing(store: Store) -> None:
    take(store, 1, 8.0)
    assert take(store, 2, budget=5.0) is None
    assert ledger.read(store, "s").left(5.0) == 0


def test_spend_without_a_reservation_counts_once_for_each_launch(store: Store) -> None:
    for _ in range(2):
        ledger.charge(store, "s", fleet="f", generation=1, cost=2.5)
    held = take(store, 2)
    assert held and held.cost == 7.5


def test_many_small_amounts_sum_exactly(store: Store) -> None:
    for n in range(1, 101):
        assert take(store, n, 0.1)
    assert take(store, 101, 0.1) is None


def test_reservations_at_once_never_pass_the_budget() -> None:
    store, start = MemoryStore(), threading.Barrier(8)

    def ask(who: int) -> None:
        start.wait()
        for n in range(20):
            held = take(store, who * 100 + n, 0.7)
            if held and n % 3 == 0:
                ledger.give_back(store, "s", held.n, 0.3)

    threads = [threading.Thread(target=ask, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account = ledger.read(store, "s")
    assert 9.3 < account.committed <= BUDGET


_ENTRY = st.one_of(
    st.builds(lambda most: ("reserve", most), st.floats(0.01, 20)),
    st.builds(lambda n, cost: ("return", n, cost), st.integers(1, 8), st.floats(0, 30)),
    st.builds(lambda g, cost: ("charge", g, cost), st.integers(100, 104), st.floats(0, 2)),
)


@given(st.lists(_ENTRY, max_size=25))
def test_whatever_is_asked_for_reservations_stay_within_the_budget(
    wishes: list[tuple[str, float, float]],
) -> None:
    store, charged = MemoryStore(), 0.0
    for n, (kind, *rest) in enumerate(wishes, start=1):
        before = ledger.read(store, "s")
        if kind == "reserve":
            held = take(store, n, rest[0])
            assert (held.cost if held else 0.0) <= before.left(BUDGET)
        elif kind == "return":
            ledger.give_back(store, "s", int(rest[0]), rest[1])
        else:
            ledger.charge(store, "s", fleet="f", generation=int(rest[0]), cost=rest[1])
        account = ledger.read(store, "s")
        charged = sum(cost for _, _, cost in account.charged)
        assert account.committed <= BUDGET + charged + 1e-9
        assert all(0 <= one.kept <= one.cost for one in account.reservations)


def test_the_fold_ignores_returns_of_nothing() -> None:
    assert fold([{"kind": "return", "of": 7, "cost": 3.0}]) == Account()
