"""What the others of a gang cost its run: each from when its leader first saw it until it had gone.

By the leader's clock alone. What its own machine costs is not in it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hostler.records.run.gang import Member, Seen


@dataclass(frozen=True)
class Span:
    """One worker's time in the gang, in the leader's seconds."""

    first: float
    last: float
    rate: float = 0.0  # an hour

    @property
    def cost(self) -> float:
        return self.rate * (self.last - self.first) / 3600


class Bill:
    def __init__(self) -> None:
        self._spans: dict[int, Span] = {}

    def see(self, seen: Seen, stale: Collection[str], now: float) -> None:
        """A look at the gang; `stale`: sessions whose heartbeat stands still."""
        for member in seen.others:
            known = self._spans.get(member.slot) or Span(now, now)
            here = member.here and member.session not in stale
            self._spans[member.slot] = replace(
                known, last=now if here else known.last, rate=known.rate or _rate(member)
            )

    @property
    def total(self) -> float:
        return sum(span.cost for span in list(self._spans.values()))  # others ask while it is seen


def _rate(member: Member) -> float:
    """As it said when it was ready; who never was has done nothing for the run."""
    return float((member.ready or {}).get("rate") or 0.0)
