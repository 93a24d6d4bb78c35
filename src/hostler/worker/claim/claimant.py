"""The worker that claims runs, as its claims and its searches for runs know it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Claimant:
    session: str
    facts: Mapping[str, Any] = field(default_factory=dict)  # written into each claim: host, pid, fleet, …
    dead: frozenset[str] = frozenset()  # sessions its parent has seen die


@dataclass(frozen=True)
class Scope:
    """The sweeps of which a worker takes runs."""

    only: frozenset[str] = frozenset()  # none: all
    section: int = 0  # of these sweeps; 0: all
    serves: Callable[[], Iterable[str]] | None = (
        None  # asked at every look, where more may be added meanwhile
    )
