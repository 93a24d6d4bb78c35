"""Paths and addresses of resources, and what can be read off them.

Addresses in answers are Google's own, whatever the emulator's: a client that follows them shows itself.
"""

from __future__ import annotations

import re

from hostler.emulators.gce.api.refusal import invalid
from hostler.frozen import dataclass

BASE = "https://www.googleapis.com/compute/v1/"
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_RULE = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"


@dataclass(frozen=True)
class Scope:
    """The scope of a resource: a zone, a region, or the whole project (`global`)."""

    project: str
    kind: str  # zones, regions, global
    place: str = ""

    @property
    def path(self) -> str:
        return f"projects/{self.project}/{self.short}"

    @property
    def short(self) -> str:
        return f"{self.kind}/{self.place}" if self.place else self.kind

    def of(self, collection: str, name: str) -> str:
        return f"{self.path}/{collection}/{name}"

    def fields(self) -> dict[str, str]:
        """The field of a resource that says where it lives; none for a global one."""
        return {self.kind[:-1]: link(self.path)} if self.place else {}


def zonal(project: str, zone: str) -> Scope:
    return Scope(project, "zones", zone)


def link(path: str) -> str:
    return BASE + path


def last(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def after(url: str, word: str) -> str:
    """The part of an address behind a word in it: `after(".../zones/z/...", "zones")` is z."""
    parts = url.split("/")
    return parts[parts.index(word) + 1] if word in parts[:-1] else ""


def path_of(url: str) -> str:
    """An address, whole or from `projects/` on, as a path."""
    _, found, rest = url.rpartition("projects/")
    return found + rest if found else url


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]


def check_name(name: object, field: str = "resource.name") -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(field, name, _RULE)
    return name
