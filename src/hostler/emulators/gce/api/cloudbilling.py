"""Google's Cloud Billing catalogue, as far as a price list is read from it: the SKUs of a service, in pages.

Each part of a machine has a SKU for each region and way of paying, and beside them is what the real one has
more of: commitments, custom and sole-tenant machines, licences, disks, whose words are alike. `factors` makes
a region dearer or cheaper.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hostler.emulators.gce.api.secretmanager import Refused
from hostler.emulators.gce.catalog import REGIONS
from hostler.emulators.gcs.message import Answer, Request, json_answer

PATH = "/v1/services"  # where it begins; at Google it has a host of its own
COMPUTE, STORAGE = "6F81-5844-456A", "95FF-2EF5-5EA1"
NAMES = {COMPUTE: "Compute Engine", STORAGE: "Cloud Storage"}
LARGEST = 5000
WHEN = "2026-11-01T00:00:00.000000Z"
SPOT = 0.4  # of the price on demand
FACTORS = {
    "us-central1": 1.0,
    "us-east1": 1.0,
    "us-west1": 1.02,
    "europe-west4": 1.1,
    "asia-southeast1": 1.25,
}
WHERE = {"us": "Americas", "europe": "Netherlands", "asia": "Singapore"}
CORES = {  # words → dollars an hour of a core and of a GiB of memory
    "E2 Instance": (0.02181159, 0.00292353),
    "N1 Predefined Instance": (0.031611, 0.004237),
    "N2 Instance": (0.031611, 0.004237),
    "N2 Custom Instance": (0.033174, 0.004446),
    "N2 Sole Tenancy Instance": (0.034772, 0.004661),
    "Compute optimized": (0.03398, 0.00455),
    "C3 Instance": (0.03398, 0.004549),
    "G2 Instance": (0.024988, 0.002927),
    "A2 Instance": (0.031611, 0.004237),
    "A3 Instance": (0.029917, 0.002568),
}
CARDS = {
    "Nvidia Tesla T4 GPU": 0.35,
    "Nvidia Tesla P100 GPU": 1.46,
    "Nvidia Tesla V100 GPU": 2.48,
    "Nvidia L4 GPU": 0.560040,
    "Nvidia Tesla A100 GPU": 2.933908,
    "Nvidia Tesla A100 80GB GPU": 3.928080,
    "Nvidia H100 80GB GPU": 9.796550,
}

Body = dict[str, Any]


@dataclass
class BillingCatalogue:
    """`good` says whether an Authorization header is."""

    good: Callable[[str], bool]
    factors: dict[str, float] = field(default_factory=lambda: dict(FACTORS))
    disabled: bool = False
    requests: list[tuple[Request, int, Any]] = field(default_factory=list)  # with status and answer
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            try:
                body = self._act(request)
                found = json_answer(body)
            except Refused as refused:
                found, body = refused.answer(), {}
            self.requests.append((request, found.status, body))
            return found

    def skus(self) -> list[Body]:
        """All that Compute Engine sells."""
        return [sku for region in self.factors for sku in self._in(region)]

    def _act(self, request: Request) -> Body:
        if not self.good(request.headers.get("authorization", "")):
            raise Refused(401, "Request had invalid authentication credentials.")
        if self.disabled:
            text = "Cloud Billing API has not been used in project 1 before or it is disabled."
            raise Refused(403, text, "SERVICE_DISABLED")
        at = re.fullmatch(rf"{PATH}(?:/([^/]+)/skus)?", request.path)
        if at is None or request.method != "GET":
            raise Refused(404, "Requested entity was not found.")
        if at[1] is None:
            return _page([_service(name) for name in NAMES], "services", request)
        if at[1] not in NAMES:
            raise Refused(404, "Requested entity was not found.")
        if request.query.get("currencyCode", "USD") != "USD":
            raise Refused(400, "the emulator knows dollars alone")
        return _page(self.skus() if at[1] == COMPUTE else [], "skus", request)

    def _in(self, region: str) -> Iterator[Body]:
        factor, place = self.factors[region], WHERE[region.partition("-")[0]]
        for words, (core, ram) in CORES.items():
            for part, cost, unit in (("Core", core, "h"), ("Ram", ram, "GiBy.h")):
                group = "N1Standard" if words.startswith("N1") else {"Core": "CPU"}.get(part, "RAM")
                text = f"{words} {part} running in {place}"
                yield _sku(text, group, "OnDemand", region, cost * factor, unit)
                spot = cost * factor * SPOT
                yield _sku(f"Spot Preemptible {text}", group, "Preemptible", region, spot, unit)
        for words, cost in CARDS.items():
            yield _sku(f"{words} running in {place}", "GPU", "OnDemand", region, cost * factor, "h")
            text = f"{words} attached to Spot Preemptible VMs running in {place}"
            yield _sku(text, "GPU", "Preemptible", region, cost * factor * SPOT, "h")
        text = f"Commitment v1: N2 Cpu in {place} for 1 Year"
        yield _sku(text, "CPU", "Commit1Yr", region, 0.0199 * factor, "h")
        text = f"Balanced PD Capacity in {place}"
        yield _sku(text, "SSD", "OnDemand", region, 0.1 * factor, "GiBy.mo")


def _service(number: str) -> Body:
    name = f"services/{number}"
    return {"name": name, "serviceId": number, "displayName": NAMES[number]}


def _sku(words: str, group: str, usage: str, region: str, cost: float, unit: str) -> Body:
    mark = hashlib.sha256(f"{words} {region}".encode()).hexdigest().upper()
    number = f"{mark[:4]}-{mark[4:8]}-{mark[8:12]}"
    return {
        "name": f"services/{COMPUTE}/skus/{number}",
        "skuId": number,
        "description": words,
        "category": {
            "serviceDisplayName": NAMES[COMPUTE],
            "resourceFamily": "Storage" if group == "SSD" else "Compute",
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": [region],
        "pricingInfo": [
            {
                "effectiveTime": WHEN,
                "summary": "",
                "pricingExpression": _expression(cost, unit),
                "currencyConversionRate": 1.0,
            }
        ],
        "serviceProviderName": "Google",
        "geoTaxonomy": {"type": "REGIONAL", "regions": [region]},
    }


def _expression(cost: float, unit: str) -> Body:
    whole = int(cost)
    price = {"currencyCode": "USD", "units": str(whole), "nanos": round((cost - whole) * 1e9)}
    return {
        "usageUnit": unit,
        "usageUnitDescription": {"h": "hour", "GiBy.h": "gibibyte hour", "GiBy.mo": "gibibyte month"}[unit],
        "displayQuantity": 1.0,
        "tieredRates": [{"startUsageAmount": 0.0, "unitPrice": price}],
        "baseUnit": {"h": "s", "GiBy.h": "By.s", "GiBy.mo": "By.s"}[unit],
        "baseUnitConversionFactor": 3600.0,
    }


def _page(found: list[Body], name: str, request: Request) -> Body:
    asked, token = request.query.get("pageSize") or LARGEST, request.query.get("pageToken") or "0"
    if not str(asked).isdigit() or not token.isdigit():
        raise Refused(400, "Request contains an invalid argument.")
    size, start = min(int(asked) or LARGEST, LARGEST), int(token)
    end = start + size
    return {name: found[start:end], "nextPageToken": str(end) if end < len(found) else ""}


if set(FACTORS) != set(REGIONS):
    raise AssertionError("every region of the emulator has a price")
