"""A file of another tool, as a sweep file of ours: what it became, how many runs it meant, what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.files.yaml12 import Document, Path


@dataclass(frozen=True)
class Foreign:
    """`runs` is their number there; None where it goes on until it is stopped."""

    tool: str
    sweep: dict[str, Any]
    runs: int | None
    notes: tuple[str, ...] = ()
    places: Mapping[Path, Path] = field(default_factory=dict)  # of ours, in their file
    results: str = ""  # folder in which people look for runs
    program: tuple[str, ...] = ()  # what trains there, if the project has it: interpreter, script, …

    def document(self, theirs: Document) -> Document:
        """Ours, with the lines of theirs."""
        lines = {path: _line(theirs, self._place(path)) for path in _paths(self.sweep)}
        return Document(theirs.name, self.sweep, lines)

    def _place(self, path: Path) -> Path:
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return (*self.places[path[:end]], *path[end:])
        return path


def _line(document: Document, path: Path) -> int:
    return int(document.where(path).rpartition(":")[2])


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    pairs = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, inner in pairs:
        yield from _paths(inner, (*path, step))
