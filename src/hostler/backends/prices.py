"""The price of a fleet, as its platform's `prices.py` tells it."""

from __future__ import annotations

from hostler.frozen import dataclass

OLD = 90  # days after which a table is called old
GIVEN = "`price` of the fleet"


@dataclass(frozen=True)
class ZonePrice:
    """Price of a worker for an hour; None where it is not sold so."""

    zone: str
    on_demand: float | None
    spot: float | None


@dataclass(frozen=True)
class PriceOffer:
    """A machine that a fleet may get, and the price of a worker for an hour."""

    machine: str
    where: str
    spot: bool
    price: float
    gpu_memory: int = 0  # bytes of one of its GPUs


@dataclass(frozen=True)
class FleetPrice:
    """`worker` is what a cap counts with; None: nobody knows."""

    workers: int
    worker: float | None = None
    source: str = ""
    zones: tuple[ZonePrice, ...] = ()
    spot: bool | str = False
    offers: tuple[
        PriceOffer, ...
    ] = ()  # in the order in which they are asked for, where they are chosen by price
    mixed: bool = False  # some of each machine are asked for at once
    left_out: tuple[str, ...] = ()  # and why
    measured: str = ""  # what the same work costs on these machines, where scouts measured it
    days: int | None = None  # since the table was written that it was taken from

    @property
    def usual(self) -> float | None:
        """Price of a worker if all goes well."""
        return self.offers[0].price if self.offers else self.worker

    @property
    def old(self) -> str:
        """Remark on a table that is old; '' for one that is not."""
        return old(self.days)

    @property
    def hourly(self) -> float | None:
        """All of it, at full size."""
        return None if self.worker is None else self.worker * self.workers


@dataclass(frozen=True)
class TableAge:
    """A platform's table of prices, as it is used here."""

    name: str
    date: str
    source: str
    days: int | None
    holds: str  # what is in it, counted


def old(days: int | None) -> str:
    """Remark on a table of so many days; '' where it is not old."""
    if days is None or days <= OLD:
        return ""
    return f"the price table is {days} days old: hostler prices update brings today's"
