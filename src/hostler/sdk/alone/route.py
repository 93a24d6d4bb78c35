"""From where to where a run by hand is carried: its folder, its attempt, its store."""

from __future__ import annotations

from hostler.frozen import dataclass
from hostler.records.attempt import Attempt
from hostler.records.handoff import Handoff
from hostler.settings import Timing
from hostler.store import Store


@dataclass(frozen=True)
class Route:
    store: Store
    attempt: Attempt
    folder: Handoff
    session: str
    timing: Timing
    keep: int = 2
