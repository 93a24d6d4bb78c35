"""The ledger of a sweep's money: fleets reserve before they start, and return the rest when they end.

One log, entry by entry, as a run's: whoever creates entry n+1 has read 1..n, and creates no reservation that
would bring the sum of what is reserved and not returned over the budget. So no number of fleets that start at
once, and no death between two writes, ever makes it pass. Amounts are whole millionths: sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import NUMBER, PART, TEXT, WHOLE, Record, checked, decode, encode, taken_apart
from hostler.store import NotFound, Store

RESERVE, RETURN, SPENT = "reserve", "return", "spent"
GRAIN = 1_000_000  # parts of one unit of money


@dataclass(frozen=True)
class Reservation:
    """Money that a launch of a fleet may spend; `returned` once it has ended."""

    n: int  # of its entry
    fleet: str
    generation: int
    launch: str  # the token of that launch: another's generation is not what it was for
    cost: float
    returned: float | None = None

    @property
    def kept(self) -> float:
        """The part of it that is spent, or may be."""
        return _money(_grains(self.cost) - _grains(self.returned or 0.0))


@dataclass(frozen=True)
class Account:
    """State of a ledger."""

    reservations: tuple[Reservation, ...] = ()
    charged: tuple[tuple[str, int, float], ...] = ()  # fleet, generation, cost: spent without a reservation

    @property
    def committed(self) -> float:
        """Spent, or reserved and perhaps spent."""
        kept = sum(_grains(reservation.kept) for reservation in self.reservations)
        return _money(kept + sum(_grains(cost) for _, _, cost in self.charged))

    @property
    def open(self) -> tuple[Reservation, ...]:
        """Reservations of launches that have not ended, as far as the ledger knows."""
        return tuple(reservation for reservation in self.reservations if reservation.returned is None)

    def left(self, budget: float) -> float:
        return _money(max(0, _grains(budget) - _grains(self.committed)))


def fold(entries: Sequence[Record]) -> Account:
    """Pure. A second return of one reservation, or a second charge for one launch, means nothing."""
    reserved: dict[int, Reservation] = {}
    charged: dict[tuple[str, int], float] = {}
    for n, entry in enumerate(entries, start=1):
        kind, cost = entry["kind"], float(entry["cost"])
        if kind == RESERVE:
            reserved[n] = Reservation(n, entry["fleet"], entry["generation"], entry["launch"], cost)
        elif kind == RETURN and (reservation := reserved.get(entry["of"])) and reservation.returned is None:
            reserved[reservation.n] = replace(reservation, returned=min(cost, reservation.cost))
        elif kind == SPENT:
            charged.setdefault((entry["fleet"], entry["generation"]), cost)
    return Account(tuple(reserved.values()), tuple((*key, cost) for key, cost in charged.items()))


def read(store: Store, sweep: str) -> Account:
    entries = _read_on(store, sweep, [])
    with taken_apart(layout.ledger(sweep)):
        return fold(entries)


def reserve(
    store: Store,
    sweep: str,
    budget: float,
    *,
    fleet: str,
    generation: int,
    launch: str,
    most: float | None = None,
    least: float = 0.0,
) -> Reservation | None:
    """Reserve what is left of the budget, at most `most`; None if that is nothing, or less than `least`."""

    def decide(account: Account) -> Record | None:
        remaining = account.left(budget)
        cost = remaining if most is None else min(remaining, _money(_grains(most)))
        if cost <= 0 or _grains(cost) < _grains(least):
            return None
        return {"kind": RESERVE, "fleet": fleet, "generation": generation, "launch": launch, "cost": cost}

    n, entry = _append(store, sweep, decide)
    return Reservation(n, fleet, generation, launch, entry["cost"]) if entry else None


def give_back(store: Store, sweep: str, n: int, cost: float) -> None:
    """Return so much of reservation n, unless that was done."""

    def decide(account: Account) -> Record | None:
        if all(reservation.n != n for reservation in account.open):
            return None
        return {"kind": RETURN, "of": n, "cost": _money(max(0, _grains(cost)))}

    _append(store, sweep, decide)


def charge(store: Store, sweep: str, *, fleet: str, generation: int, cost: float) -> None:
    """Charge the cost of a launch without a reservation to the sweep, once."""

    def decide(account: Account) -> Record | None:
        known = any((name, g) == (fleet, generation) for name, g, _ in account.charged)
        entry = {"kind": SPENT, "fleet": fleet, "generation": generation, "cost": _money(_grains(cost))}
        return None if known else entry

    _append(store, sweep, decide)


def _append(
    store: Store, sweep: str, decide: Callable[[Account], Record | None]
) -> tuple[int, dict[str, Any]]:
    """Append what the whole ledger calls for; whoever was faster changes it, so decide again."""
    entries: list[Record] = []
    while True:
        _read_on(store, sweep, entries)
        with taken_apart(layout.ledger(sweep)):
            account = fold(entries)
        entry = decide(account)
        if entry is None:
            return 0, {}
        n = len(entries) + 1
        if store.put(layout.ledger_entry(sweep, n), encode(entry), if_absent=True):
            return n, entry


def _read_on(store: Store, sweep: str, entries: list[Record]) -> list[Record]:
    """The entries behind those that are known; they have no gaps."""
    while True:
        key = layout.ledger_entry(sweep, len(entries) + 1)
        try:
            entries.append(checked(decode(store.get(key).data, key), _FIELDS, key, ["kind", "cost"]))
        except NotFound:
            return entries


_FIELDS = {"kind": TEXT, "cost": NUMBER, "fleet": PART, "generation": WHOLE, "launch": TEXT, "of": WHOLE}


def _grains(money: float) -> int:
    return round(money * GRAIN)


def _money(grains: int) -> float:
    return grains / GRAIN
