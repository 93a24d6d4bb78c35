"""Money, as readers see it."""

from __future__ import annotations

from hostler.analysis.spend import spend
from hostler.records.body import encode
from hostler.store.memory import MemoryStore


def test_money_is_summed_by_sweep_and_fleet_and_what_is_returned_goes_to_who_had_it() -> None:
    store = MemoryStore()
    entries = [
        {"kind": "reserve", "fleet": "burst", "cost": 10.0},
        {"kind": "reserve", "fleet": "tau", "cost": 5.0},
        {"kind": "return", "of": 1, "cost": 4.0},
        {"kind": "spent", "fleet": "tau", "cost": 1.5},
        {"kind": "of a later version", "cost": "?"},
    ]
    for n, entry in enumerate(entries, start=1):
        store.put(f"ledger/lr/{n:06d}.json", encode(entry))
    store.put("ledger/lr/000006.json", b"half a rec")
    burst, tau = spend(store)
    assert burst == {
        "sweep": "lr",
        "fleet": "burst",
        "reserved": 10,
        "returned": 4,
        "spent": 0,
        "committed": 6,
    }
    assert (tau["fleet"], tau["reserved"], tau["committed"]) == ("tau", 5, 6.5)


def test_where_nothing_has_a_price_there_is_nothing_to_show() -> None:
    assert spend(MemoryStore()) == []
