"""The worker that claims runs, as its claims and its searches for runs know it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.worker import session_name


@dataclass(frozen=True)
class Claimant:
    session: str
    facts: Mapping[str, Any] = field(default_factory=dict)  # written into each claim: host, pid, fleet, …
    dead: frozenset[str] = frozenset()  # sessions its parent has seen die
    fate: Callable[[str], str] = lambda job: ""  # how the worker of a job ended, if its platform tells

    def outlives(self, session: str) -> bool:
        """Whether a session is known to be dead: its parent saw it die, or it had this worker's place."""
        return session in self.dead or session_name.succeeds(self.session, session)


@dataclass(frozen=True)
class Scope:
    """The sweeps of which a worker takes runs."""

    only: frozenset[str] = frozenset()  # none: all
    section: int = 0  # of these sweeps; 0: all
    serves: Callable[[], Iterable[str]] | None = (
        None  # asked at every look, where more may be added meanwhile
    )
