"""The price of a fleet, as its platform's `prices.py` tells it."""

from __future__ import annotations

from dataclasses import dataclass

GIVEN = "`price` of the fleet"


@dataclass(frozen=True)
class ZonePrice:
    """Price of a worker for an hour; None where it is not sold so."""

    zone: str
    on_demand: float | None
    spot: float | None


@dataclass(frozen=True)
class FleetPrice:
    """`worker` is what a cap counts with; None: nobody knows."""

    workers: int
    worker: float | None = None
    source: str = ""
    zones: tuple[ZonePrice, ...] = ()
    spot: bool | str = False

    @property
    def hourly(self) -> float | None:
        """All of it, at full size."""
        return None if self.worker is None else self.worker * self.workers
