"""From where to where a run by hand is carried: its folder, its attempt, its store."""

from __future__ import annotations

from typing import NamedTuple

from hostler.records.attempt import Attempt
from hostler.records.handoff import Handoff
from hostler.settings import Timing
from hostler.store import Store


class Route(NamedTuple):
    store: Store
    attempt: Attempt
    folder: Handoff
    session: str
    timing: Timing
    keep: int = 2
