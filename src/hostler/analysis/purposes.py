"""Costs of launches by purpose, for the report and the dashboard: by the notes of workers alone.

Launches that cannot be read are left out: a page that shows money must not fail for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hostler import settings
from hostler.errors import HostlerError
from hostler.frozen import dataclass
from hostler.records.launch import breakdown, launches
from hostler.records.launch.breakdown import Breakdown
from hostler.records.launch.launches import Generation
from hostler.records.run import heartbeats
from hostler.store import Store

MOST = 12  # launches that are shown, the newest
WORDS = {
    "training": "training",
    "booting": "booting",
    "saving": "saving",
    "repeated": "repeated work",
    "idle": "idle",
    "tail": "tail",
}


@dataclass(frozen=True)
class LaunchPurposes:
    """A launch and its money by purpose; the ideal is the training alone."""

    name: str
    parts: Breakdown


class Purposes:
    """Reads launches of a store; one that is over is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over: dict[str, LaunchPurposes] = {}

    def read(self, sweep: str = "") -> list[LaunchPurposes]:
        """The newest launches with a price, the newest first; those of one sweep alone, if named."""
        try:
            generations = [one for one in launches.everywhere(self._store) if _counts(one, sweep)]
            newest = sorted(generations, key=lambda one: -one.began)[:MOST]
            now = heartbeats.readers_time(self._store) if newest else 0.0
        except HostlerError:
            return []
        made = (self._over.get(one.name) or self._look(one, now) for one in newest)
        return [one for one in made if one and one.parts.total > 0]

    def _look(self, one: Generation, now: float) -> LaunchPurposes | None:
        try:
            made = LaunchPurposes(
                one.name, breakdown.read(self._store, one, {}, now, settings.timing(), _pass)
            )
            if launches.gone_at(self._store, one.fleet, one.number) is not None:
                self._over[one.name] = made
            return made
        except (HostlerError, KeyError, TypeError, ValueError):
            return None


def _pass(line: str) -> None:
    """A run whose log cannot be read is idle time here."""


def rows(found: Sequence[LaunchPurposes]) -> list[dict[str, Any]]:
    """Plain data for a page: each purpose with its name for people, in order."""
    return [
        {
            "launch": purposes.name,
            "total": round(purposes.parts.total, 6),
            "parts": [[WORDS[key], round(cost, 6)] for key, cost in asdict(purposes.parts).items()],
        }
        for purposes in found
    ]


def _counts(one: Generation, sweep: str) -> bool:
    return bool(one.price) and not one.by_hand and (not sweep or sweep in _sweeps(one))


def _sweeps(one: Generation) -> Iterable[str]:
    return {*one.sweeps, *one.reserved}
