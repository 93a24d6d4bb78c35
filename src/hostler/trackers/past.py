"""A run read back from another tool: the facts that a frame needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.records.series.points import Point

Say = Callable[[str], None]  # what cannot be read, one line each


@dataclass(frozen=True)
class Past:
    id: str
    name: str
    group: str  # project, experiment or folder
    state: str = ""  # in hostler's words; '' if the tool does not say
    params: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    host: str = ""
    started: float | None = None
    ended: float | None = None
    points: Sequence[Point] = ()
