"""Configurations that are written down one by one: what a search chose before its place was taken.

It stands where a space does in a round, so that runs in the trash keep index, id and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.params import flatten
from hostler.spec.space.repeat import Repeat

KEY = "listed"  # of its record, which a space's has not


@dataclass(frozen=True)
class Listed:
    given: tuple[Mapping[str, Any], ...]

    @property
    def count(self) -> int:
        return len(self.given)

    @property
    def source(self) -> Mapping[str, Any]:
        """Nothing that anybody waits for."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def varying(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for params in self.given for key in flatten(params)))

    @property
    def repeat(self) -> Repeat:
        return Repeat()

    @property
    def scales(self) -> dict[str, bool]:
        return {}

    def params(self, index: int) -> dict[str, Any]:
        return dict(self.given[index])

    def occurrence(self, index: int) -> int:
        """A journal counts no repeats: its runs differ by their index."""
        return 0

    def section_of(self, index: int) -> int:
        return 0


def to_json(one: Listed) -> dict[str, Any]:
    return {KEY: [dict(params) for params in one.given]}


def from_json(record: Mapping[str, Any]) -> Listed:
    return Listed(tuple(record[KEY]))


def is_one(record: Mapping[str, Any]) -> bool:
    return KEY in record
