"""A round: one submission of a sweep's file, as the runs that were new in it.

Parameters are computed from the space and the cell, so that a million runs are a few lines. What a round
holds never changes: an edited file is another round, and the runs of the rounds before it keep their
places. Standard library only: workers read it. The search space is imported where there is one: a script
that runs alone has none, and waits for its imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hostler.frozen import dataclass
from hostler.spec import spans
from hostler.spec.spans import Spans

if TYPE_CHECKING:
    from hostler.spec.space import Listed, Space


@dataclass(frozen=True)
class Round:
    """Run n of it has the parameters of cell `cells.nth(n)` of the space, and this command."""

    space: Space | Listed
    cells: Spans
    command: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.cells)

    def params(self, n: int) -> Mapping[str, Any]:
        return self.space.params(self.cells.nth(n))

    def repeat(self, n: int) -> int:
        """Which run with these very parameters it is: 0, 1 …"""
        return self.space.occurrence(self.cells.nth(n))

    def section(self, n: int) -> int:
        return self.space.section_of(self.cells.nth(n))

    def to_json(self) -> dict[str, Any]:
        from hostler.spec import space
        from hostler.spec.space import Listed, listed

        given = self.space
        return {
            "space": listed.to_json(given) if isinstance(given, Listed) else space.to_json(given),
            "cells": spans.to_json(self.cells),
            "command": list(self.command),
        }


def from_json(record: Mapping[str, Any]) -> Round:
    from hostler.spec import space
    from hostler.spec.space import listed

    found = record["space"]
    return Round(
        listed.from_json(found) if listed.is_one(found) else space.from_json(found),
        spans.from_json(record["cells"]),
        tuple(record["command"]),
    )
