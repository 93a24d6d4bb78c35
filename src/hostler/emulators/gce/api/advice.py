"""Where capacity is likely: `advice.capacity` and `advice.capacityHistory`, from the emulator's own stock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.links import last, link
from hostler.emulators.gce.api.refusal import invalid, required
from hostler.emulators.gce.catalog import machine_type, zones_of
from hostler.emulators.gce.stock import Need
from hostler.emulators.gce.world import World

Body = dict[str, Any]
_DAYS = 3


def capacity(world: World, call: Call) -> Body:
    """One recommendation: all machines in the first zone that has some; nowhere, a score of nothing."""
    selections = call.body.get("instanceFlexibilityPolicy", {}).get("instanceSelections", {})
    named = [name for one in selections.values() for name in one.get("machineTypes", [])]
    if not named:
        raise required("instanceFlexibilityPolicy.instanceSelections")
    model = _model(call)
    asked = [last(one["zone"]) for one in call.body.get("distributionPolicy", {}).get("zones", [])]
    places = [(zone, name) for name in named for zone in asked or zones_of(call.scope.place)]
    has = [place for place in places if _has(world, *place, spot=model == "SPOT")]
    zone, name = (has or places)[0]
    shard = {"zone": zone, "machineType": name, "instanceCount": int(call.body.get("size", 1))}
    scores: Body = {"obtainability": 0.9 if has else 0.0, "estimatedUptime": "86400s" if has else "0s"}
    return {"recommendations": [{"scores": scores, "shards": [{**shard, "provisioningModel": model}]}]}


def history(world: World, call: Call) -> Body:
    """A few days of preemptions and prices; a zone that is short of spot preempts more."""
    properties = call.body.get("instanceProperties", {})
    name = last(properties.get("machineType", ""))
    if not name:
        raise required("instanceProperties.machineType")
    place = last(call.body.get("locationPolicy", {}).get("location", "")) or call.scope.place
    zones = zones_of(place) or [place]
    has = all(_has(world, zone, name, spot=True) for zone in zones)
    kind = "regions" if zones_of(place) else "zones"
    answer: Body = {"machineType": name, "location": link(f"projects/{world.project}/{kind}/{place}")}
    types = call.body.get("types", [])
    if "PREEMPTION" in types:
        rate = 0.05 if has else 0.6
        answer["preemptionHistory"] = [{"interval": day, "preemptionRate": rate} for day in _days()]
    if "PRICE" in types:
        price = {"currencyCode": "USD", "units": "0", "nanos": 100000000}
        answer["priceHistory"] = [{"interval": day, "listPrice": price} for day in _days()]
    return answer


def _model(call: Call) -> str:
    return str(call.body.get("instanceProperties", {}).get("scheduling", {}).get("provisioningModel", "SPOT"))


def _has(world: World, zone: str, name: str, *, spot: bool) -> bool:
    kind = machine_type(name)
    if kind is None:
        raise invalid("machineType", name, "The referenced resource does not exist.")
    return world.stock.has(Need(zone, kind, spot), world.taken())


def _days() -> list[Body]:
    now = datetime.fromtimestamp(time.time(), timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    ends = [now - timedelta(days=back) for back in range(_DAYS)]
    return [{"startTime": _utc(end - timedelta(days=1)), "endTime": _utc(end)} for end in ends]


def _utc(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")
