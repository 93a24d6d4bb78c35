"""Shows a launch's cost before it starts, on demand and spot, zone by zone, and how long it may last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click

from hostler import settings
from hostler.errors import UsageError
from hostler.fleet.launcher import Launcher, foresee
from hostler.frozen import dataclass
from hostler.money.tariff import Asked, Funded
from hostler.spec.job import Job
from hostler.spec.units import counted, show_duration, show_money
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.backends.prices import FleetPrice, ZonePrice

ZONES = 8  # that are shown; the cheapest
NO_PRICE = (
    "the price of this machine is not known, so `budget: {cost}` is not enforced here; `price:` in a fleet"
)


@dataclass(frozen=True)
class Outlay:
    """A launch as it would be agreed on now, or why it would not."""

    asked: Asked
    funded: Funded = field(default_factory=Funded)
    refused: UsageError | None = None
    warnings: tuple[str, ...] = ()

    @property
    def costs(self) -> bool:
        return bool(self.asked.price.hourly)


def outlay(
    store: Store, workers: Launcher, jobs: Sequence[Job], runs: int = 0, *, settle: bool = False
) -> Outlay:
    """The outlay of a launch for these sweeps. `settle`: money of launches that are over goes back first."""
    asked = workers.asked(jobs, runs)
    warned = workers.plan([job.name for job in jobs], runs).warnings if asked.billed else ()
    try:
        if settle and asked.budgets and asked.price.worker:
            from hostler.money import funding  # only where a budget is kept

            workers.settle(store)
            funding.settle(store, asked, settings.timing())
        return Outlay(asked, foresee(store, asked), warnings=warned)
    except UsageError as error:
        return Outlay(asked, refused=error, warnings=warned)


def check(found: Outlay) -> None:
    if found.refused:
        raise found.refused


def agreed(found: Outlay, *, yes: bool) -> bool:
    """Show what it costs and ask, if it costs anything."""
    check(found)
    for line in lines(found):
        click.echo(line, err=True)
    if not found.costs:
        return True
    from hostler.cli.terminal.ask import ask

    return ask("Start?", yes=yes)


def lines(found: Outlay) -> Iterator[str]:
    yield from _money(found)
    yield from (f"  {found.asked.fleet.name}: {text}" for text in found.warnings)


def _money(found: Outlay) -> Iterator[str]:
    price, name = found.asked.price, found.asked.fleet.name
    if price.worker is None:
        if found.asked.budgets and found.asked.own:
            yield f"  {NO_PRICE}"
        return
    if price.zones:
        yield from _table(price, name)
    if price.offers:
        yield from _offers(price, name)
    if price.worker:
        count = counted(price.workers, "worker")
        each, total = show_money(price.worker), show_money(price.hourly)
        most = " at most" if price.offers and price.worker > price.offers[0].price else ""
        yield f"  {name}: {count} at {each} an hour, {total} in all{most} ({price.source})"
    if price.old:
        yield f"  {price.old}"
    yield from _cap(found)


def as_json(found: Outlay) -> dict[str, Any]:
    price = found.asked.price
    return {
        "per_worker_hour": price.worker,
        "per_hour": price.hourly,
        "source": price.source or None,
        "table_days": price.days,
        "zones": [vars(zone) for zone in price.zones],
        **({"offers": [vars(offer) for offer in price.offers]} if price.offers else {}),
        **({"left_out": list(price.left_out)} if price.offers else {}),
        **({"measured": price.measured} if price.measured else {}),
        "reserves": dict(found.funded.reserved),
        "seconds": found.funded.seconds,
        "refused": str(found.refused) if found.refused else None,
        "warnings": list(found.warnings),
    }


def _table(price: FleetPrice, name: str) -> Iterator[str]:
    """The cheapest zones first, as the fleet would be paid for."""
    mark = {True: "spot", False: "on demand"}.get(price.spot if isinstance(price.spot, bool) else False)
    mark = "spot, else on demand" if price.spot == "prefer" else mark
    yield f"  {name}: an hour of one worker (of all {price.workers}), disk included; {mark}"
    shown: Sequence[ZonePrice] = price.zones[:ZONES]
    width = max(len(zone_price.zone) for zone_price in shown)
    yield f"    {'zone':<{width}}  {'on demand':>18}  {'spot':>18}"
    for one in shown:
        cells = [_cell(cost, price.workers) for cost in (one.on_demand, one.spot)]
        yield f"    {one.zone:<{width}}  {cells[0]:>18}  {cells[1]:>18}"
    if len(price.zones) > ZONES:
        yield f"    and {counted(len(price.zones) - ZONES, 'more expensive zone')}"


def _offers(price: FleetPrice, name: str) -> Iterator[str]:
    """Machines in the order in which they are asked for, and what was left out."""
    order = "some of each machine" if price.mixed else "the first that is there"
    yield f"  {name}: an hour of one worker (of all {price.workers}), disk included; {order}"
    shown = price.offers[:ZONES]
    wide, far = max(len(offer.machine) for offer in shown), max(len(offer.where) for offer in shown)
    for price_offer in shown:
        model = "spot" if price_offer.spot else "on demand"
        cost = _cell(price_offer.price, price.workers)
        yield f"    {price_offer.machine:<{wide}}  {price_offer.where:<{far}}  {model:<9}  {cost:>18}"
    if len(price.offers) > ZONES:
        yield f"    and {len(price.offers) - ZONES} more, up to {show_money(price.worker)}"
    if price.measured:
        yield f"    {price.measured}"
    yield from (f"    left out: {line}" for line in price.left_out)


def _cell(cost: float | None, workers: int) -> str:
    return "-" if cost is None else f"{show_money(cost)} ({show_money(cost * workers)})"


def _cap(found: Outlay) -> Iterator[str]:
    seconds, reserved = found.funded.seconds, found.funded.reserved
    if found.refused:
        yield f"  → {found.refused}"
    if seconds is None:
        return
    held = " and ".join(f"{show_money(cost)} of {sweep}'s budget" for sweep, cost in reserved.items())
    most = (found.asked.price.hourly or 0.0) * (seconds + settings.timing().cap_margin) / 3600
    why = f", which takes {held}" if held else f", for {show_money(most)} at most" if most else ""
    yield f"  gone after {show_duration(round(seconds))} at the latest{why}"
