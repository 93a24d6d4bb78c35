"""Owner of a thing in a cluster: its name, its labels and its annotation. Pure.

`backends/cloud.py` has the labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.backends.cloud import Owner, scope_of
from hostler.spec.project import Fleet

URL = "hostler-store"  # an annotation: labels take no URL


def owner_of(fleet: Fleet) -> Owner:
    return Owner(*scope_of(fleet))


def labels_of(thing: Mapping[str, Any]) -> Mapping[str, str]:
    found = thing.get("metadata", {}).get("labels") or {}
    return {name: str(value) for name, value in found.items()}


def name_of(thing: Mapping[str, Any]) -> str:
    return str(thing.get("metadata", {}).get("name", ""))


def store_of(thing: Mapping[str, Any]) -> str:
    return str((thing.get("metadata", {}).get("annotations") or {}).get(URL, ""))
