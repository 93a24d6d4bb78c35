"""One line of the table: what ours costs, what the least possible costs, how many times that is allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Both are measured in the same run on the same machine, so that their ratio means something anywhere."""

    name: str
    ours: float
    floor: float
    bound: float | None  # None: a peer, shown beside ours
    unit: str

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def kept(self) -> bool:
        return self.bound is None or self.ratio <= self.bound
