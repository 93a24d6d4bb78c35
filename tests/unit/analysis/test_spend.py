"""Money, as readers see it."""

from __future__ import annotations

from hostler.analysis.spend import spend
from hostler.records.body import encode
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from hostler.store.memory import MemoryStore


def test_money_sums_by_sweep_and_fleet_and_returns_to_owners() -> None:
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


def test_priced_fleet_without_a_budget_shows_what_its_workers_took() -> None:
    store = MemoryStore(clock=lambda: 5000.0)
    launch = Generation("lab", 1, "l", workers=2, price=3.6, began=1000.0, sweeps=("a", "b"), counted=True)
    launches.begin(store, launch)
    launches.note(store, "lab", 1, Stay("w", 2000.0, over=True, final=True, used=1.0))
    lines = {one["sweep"]: one for one in spend(store)}
    assert {name: (one["fleet"], one["spent"]) for name, one in lines.items()} == {
        "a": ("lab", 1.0),
        "b": ("lab", 1.0),
    }
    store.put("fleets/lab/000001/workers/x.json", b"half a rec")
    assert spend(store) == []  # said nowhere else, and the page is there


def test_what_a_launch_has_spent_counts_once_beside_its_reservation() -> None:
    store = MemoryStore(clock=lambda: 5000.0)
    store.put("ledger/a/000001.json", encode({"kind": "reserve", "fleet": "lab", "cost": 10.0}))
    launch = Generation("lab", 1, "l", 1, price=3.6, began=1000.0, sweeps=("a",), reserved={"a": 10.0})
    launches.begin(store, launch)
    launches.note(store, "lab", 1, Stay("w", 1000.0, over=True, final=True))
    [line] = spend(store)
    assert (line["reserved"], line["spent"], line["committed"]) == (10.0, 1.0, 10.0)


def test_where_nothing_has_a_price_there_is_nothing_to_show() -> None:
    assert spend(MemoryStore()) == []
