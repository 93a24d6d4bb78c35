"""Places of Compute Engine by name: zones, regions, continents; and the way of data to them. Pure."""

from __future__ import annotations

import re

ANY = "any"
ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
WIDE = re.compile(r"[a-z]+(-[a-z]+\d+)?")  # a continent, or a region
_WORDS = {"northamerica": "america", "southamerica": "america", "us": "america", "america": "america"}
_MULTI = {"us": "us-", "eu": "europe-", "asia": "asia-"}  # a bucket's location → regions that it is in
SAME_CONTINENT, OTHER_CONTINENT = 0.02, "0.05 to 0.15"  # dollars a GB, between buckets and VMs


def continent(region: str) -> str:
    start = region.partition("-")[0]
    return _WORDS.get(start, start)


def lies_in(zone: str, place: str) -> bool:
    """Whether a zone is this place, or in it: `any`, `us`, `europe`, a region or a zone."""
    return place == ANY or zone == place or zone.startswith(f"{place}-")


def is_place(name: str, regions: set[str]) -> bool:
    """Whether the name is that of a place with VMs. Zones of known regions are taken as they are."""
    if name == ANY or name in regions or any(region.startswith(f"{name}-") for region in regions):
        return True
    return bool(ZONE.fullmatch(name)) and name.rpartition("-")[0] in regions


def far(location: str, region: str) -> str:
    """Distance of a bucket at this location to VMs of a region, in words; '' if they are together."""
    at = location.lower()
    if not at or at == region or region.startswith(_MULTI.get(at, "\0")):
        return ""
    start = _MULTI.get(at, at)
    if continent(start) == continent(region):
        return f"in another region, which costs about {SAME_CONTINENT:.2f} a GB"
    return f"on another continent, which costs {OTHER_CONTINENT} a GB and takes longer"
