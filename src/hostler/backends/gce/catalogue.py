"""A price table made of Google's Cloud Billing catalogue: `hostler prices update`.

The catalogue sells cores, memory and GPUs by the hour, each region at its own price; a machine type costs its
parts. Which machine types, GPUs and zones there are comes from hostler's own table: the catalogue tells
neither sizes nor zones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from hostler.backends.gce import prices
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.prices import Kind, PriceTable, RegionPrice
from hostler.backends.gce.tokens import client_without_project
from hostler.errors import CloudError, MachineError
from hostler.private import own_folder

GOOGLE = "https://cloudbilling.googleapis.com"
COMPUTE = "services/6F81-5844-456A"  # Compute Engine, as the catalogue numbers it
PAGE = 5000
ON_DEMAND, SPOT = "OnDemand", "Preemptible"
CORE, RAM, GPU = "core", "ram", "gpu"
UNITS = {CORE: "h", RAM: "GiBy.h", GPU: "h"}
_SERIES = {  # the catalogue's words for the cores and memory of machine types that begin so
    "n1": "N1 Predefined", "n2": "N2", "e2": "E2", "c2": "Compute optimized", "c3": "C3", "g2": "G2",
    "g4": "G4", "a2": "A2", "a3-highgpu": "A3", "a3-edgegpu": "A3", "a3-megagpu": "A3Plus",
    "a3-ultragpu": "A3Ultra", "a4": "A4",
}  # fmt: skip
_GPUS = {
    "T4": "T4", "P4": "P4", "P100": "P100", "V100": "V100", "L4": "L4", "A100": "A100", "H100 80GB": "H100",
    "A100 80GB": "A100-80GB", "H100 80GB PLUS": "H100-MEGA", "H100 80GB MEGA": "H100-MEGA",
    "H100 MEGA 80GB": "H100-MEGA", "H200 141GB": "H200", "B200 (1 GPU SLICE)": "B200",
    "RTX PRO 6000 96GB": "RTXPRO6000", "RTX 6000 96GB": "RTXPRO6000",
}  # fmt: skip
_PART = re.compile(r"(?:Spot )?(?:Preemptible )?(.+?)(?: Instance)? (Core|Ram) running in .+")
_CARD = re.compile(
    r"(?:Nvidia )?(?:Tesla )?(.+?)(?: GPU)?(?: attached to (?:Spot )?Preemptible VMs)? running in .+"
)

Body = dict[str, Any]
Rates = Mapping[tuple[str, str, str, str], float]  # (part, whose, region, usage) → an hour of one


def update() -> str:
    """Write today's table and say what is in it; the one before stays where the catalogue is of no use."""
    known = prices.load(prices.OWN)
    price_table = table(rates(skus()), known, date.today())
    if not price_table.machines:
        raise CloudError(
            "the Cloud Billing catalogue has no price of a machine that hostler knows; nothing was written",
            "a newer hostler may know its words; until then `price:` in a fleet",
        )
    path = _written(as_text(price_table))
    missing = [*_gone(known.machines, price_table.machines), *_gone(known.gpus, price_table.gpus)]
    text = f"{len(price_table.machines)} machine types and {len(price_table.gpus)} GPUs in {path}"
    return text + (f"; not in the catalogue: {', '.join(missing)}" if missing else "")


def skus() -> Iterator[Body]:
    """All that Compute Engine sells, page by page."""
    client, token = client_without_project(GOOGLE, "/v1", "the Cloud Billing catalogue", COMPUTE), ""
    while True:
        page = _page(client, token)
        yield from page.get("skus") or ()
        before, token = token, page.get("nextPageToken") or ""
        if not token:
            return
        if token == before:
            raise CloudError(
                "the Cloud Billing catalogue answers the same page again and again; nothing was written",
                "check the network and its proxy, then run the same command again",
            )


def _page(client: GceClient, token: str) -> Body:
    more = {"pageToken": token} if token else {}
    try:
        return client.get("skus", currencyCode="USD", pageSize=PAGE, **more)
    except GceRefusal as error:
        if error.status != 403:
            raise
        raise CloudError(
            f"the Cloud Billing catalogue may not be read: {error.said or error.code}",
            "gcloud services enable cloudbilling.googleapis.com, then the same command again",
        ) from None


def rates(found: Iterable[Body]) -> dict[tuple[str, str, str, str], float]:
    """Prices of an hour: of a core, a GiB and a GPU. What is not sold by the hour is passed over. Pure."""
    known: dict[tuple[str, str, str, str], float] = {}
    for sku in found:
        kind = part_of(sku)
        cost = hourly(sku, UNITS[kind[0]]) if kind else None
        if kind is None or cost is None:
            continue
        for region in sku.get("serviceRegions") or ():
            known[kind[0], kind[1], region, str(sku["category"]["usageType"])] = cost
    return known


def part_of(sku: Mapping[str, Any]) -> tuple[str, str] | None:
    """(core, ram or gpu, whose) that a SKU sells; None for everything else: licences, commitments, disks."""
    category, words = sku.get("category") or {}, str(sku.get("description", ""))
    if category.get("usageType") not in (ON_DEMAND, SPOT):
        return None
    if category.get("resourceGroup") == "GPU":
        card = _CARD.fullmatch(words)
        name = _GPUS.get(card[1].upper()) if card else None
        return (GPU, name) if name else None
    part = _PART.fullmatch(words)
    if part is None or part[1] not in _SERIES.values():
        return None
    return (CORE if part[2] == "Core" else RAM), part[1]


def hourly(sku: Mapping[str, Any], unit: str) -> float | None:
    """Price of one unit by the newest of a SKU's prices; of several steps the dearest. A part that would cost
    nothing, or less, has none: a machine without a price is refused, one that is free no cap would end."""
    known = sku.get("pricingInfo") or []
    told = (known[-1] if known else {}).get("pricingExpression") or {}
    if told.get("usageUnit") != unit:
        return None
    steps = [step.get("unitPrice") or {} for step in told.get("tieredRates") or ()]
    try:
        dearest = max((_money(one) for one in steps), default=0.0)
    except (OverflowError, TypeError, ValueError):
        return None  # damaged
    return dearest if dearest > 0 else None


def _money(price: Mapping[str, Any]) -> float:
    return int(price.get("units") or 0) + int(price.get("nanos") or 0) / 1e9


def table(found: Rates, known: PriceTable, today: date) -> PriceTable:
    """The machine types, GPUs and zones that are known, at these rates. Pure."""
    machines = {name: _machine(kind, found) for name, kind in known.machines.items()}
    gpus = {name: _card(kind, found) for name, kind in known.gpus.items()}
    sold = {name: kind for name, kind in gpus.items() if kind.rates}
    whole = {"", *sold}  # a machine whose GPU is not sold would cost its cores alone
    return PriceTable(
        today.isoformat(),
        {name: kind for name, kind in machines.items() if kind.rates and prices.own_gpus(name)[0] in whole},
        sold,
    )


def _machine(kind: Kind, found: Rates) -> Kind:
    series = next((words for start, words in _SERIES.items() if kind.name.startswith(f"{start}-")), "")

    def cost(region: str, usage: str) -> float | None:
        core, ram = (found.get((part, series, region, usage)) for part in (CORE, RAM))
        return None if core is None or ram is None else round(kind.vcpus * core + kind.memory * ram, 5)

    return _priced(kind, {region: (cost(region, ON_DEMAND), cost(region, SPOT)) for region in kind.rates})


def _card(kind: Kind, found: Rates) -> Kind:
    return _priced(
        kind,
        {
            region: (
                found.get((GPU, kind.name, region, ON_DEMAND)),
                found.get((GPU, kind.name, region, SPOT)),
            )
            for region in kind.rates
        },
    )


def _priced(kind: Kind, costs: Mapping[str, tuple[float | None, float | None]]) -> Kind:
    """The kind where it is sold at all."""
    sold = {region: pair for region, pair in costs.items() if pair != (None, None)}
    return replace(
        kind, rates={region: RegionPrice(kind.rates[region].zones, *pair) for region, pair in sold.items()}
    )


def as_text(found: PriceTable) -> str:
    """The table in the form that `prices.load` reads."""
    head = prices.OWN.read_text(encoding="utf-8").splitlines()[1]
    lines = [f"# Google Compute Engine, USD an hour, by the Cloud Billing catalogue of {found.date}.", head]
    lines.append(f"date {found.date}")
    for kind in found.machines.values():
        lines.append(f"machine {kind.name} {kind.vcpus:g} {kind.memory:g} {_words(kind)}")
    lines += [f"gpu {kind.name} {_words(kind)}" for kind in found.gpus.values()]
    return "\n".join(lines) + "\n"


def _words(kind: Kind) -> str:
    return " ".join(
        f"{region}:{rate.zones}:{_cell(rate.on_demand)}:{_cell(rate.spot)}"
        for region, rate in kind.rates.items()
    )


def _cell(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:.9f}".rstrip("0").rstrip(".")


def _gone(before: Mapping[str, Kind], after: Mapping[str, Kind]) -> list[str]:
    return [name for name in before if name not in after]


def _written(text: str) -> Path:
    """A reader sees the table before or this one, never a part."""
    path = prices.fetched_path()
    try:
        own_folder(path.parent, "set XDG_STATE_HOME to a folder of your own")
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise MachineError(
            f"{path}: {error.strerror}", "free space there, or set XDG_STATE_HOME to another folder"
        ) from None
    prices.load.cache_clear()
    return path
