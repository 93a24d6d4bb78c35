"""Owner of a thing in a cluster: its name, its labels and its annotation. Pure.

Labels decide, never a name: two projects may come to the same one. Nor do project and fleet alone: a
colleague's copy of the project has both, and another store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostler.spec.names import as_label, slug, store_label
from hostler.spec.project import Fleet

PREFIX = "hostler-"
PROJECT, FLEET, STORE = "hostler-project", "hostler-fleet", "hostler-store"
GENERATION = "hostler-generation"
URL = "hostler-store"  # an annotation: labels take no URL
_PART = 18  # characters of a project's or a fleet's name: with generation and index it stays under 63


@dataclass(frozen=True)
class Owner:
    """A fleet of a project with its store, as the cluster knows it."""

    project: str
    fleet: str
    store: str  # its URL

    @property
    def labels(self) -> dict[str, str]:
        return {
            PROJECT: as_label(self.project),
            FLEET: as_label(self.fleet),
            STORE: store_label(self.store),
        }

    def name(self, generation: str) -> str:
        return f"{PREFIX}{_part(self.project)}-{_part(self.fleet)}-{generation}"


def owner_of(fleet: Fleet) -> Owner:
    return Owner(fleet.scope or "hostler", fleet.name, fleet.store)


def labels_of(thing: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = thing.get("metadata", {}).get("labels") or {}
    return found


def name_of(thing: Mapping[str, Any]) -> str:
    return str(thing.get("metadata", {}).get("name", ""))


def store_of(thing: Mapping[str, Any]) -> str:
    return str((thing.get("metadata", {}).get("annotations") or {}).get(URL, ""))


def _part(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", slug(text, _PART)).strip("-")
