"""What a run printed, as fragments in the store: one writer per attempt and rank, read in name order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostler.records import layout
from hostler.store import NotFound, Store


class LogWriter:
    def __init__(self, store: Store, run: str, attempt: int, rank: int = 0) -> None:
        self._store, self._run, self._attempt, self._rank = store, run, attempt, rank
        self._sequence = 0

    def write(self, data: bytes) -> None:
        """Put the next piece; after an error the same piece may be written again, with the same number."""
        key = layout.log_fragment(self._run, self._attempt, self._rank, self._sequence)
        self._store.put(key, data)
        self._sequence += 1


@dataclass(frozen=True)
class Piece:
    attempt: int
    data: bytes


class LogReader:
    """Reads a run's log from where it stopped last time."""

    def __init__(self, store: Store, run: str, attempt: int | None = None, *, later_than: int = 0) -> None:
        self._store, self._run, self._attempt = store, run, attempt
        self._after = layout.log_fragment(run, later_than + 1, 0, 0)[:-1] if later_than else ""
        self._nodes: dict[
            tuple[int, int], str
        ] = {}  # (attempt, rank) → its last fragment, of the newest attempt

    def start_near_end(self, lines: int) -> None:
        """Let the first read begin with the fragment that holds the last `lines` lines, or one before it."""
        keys = [entry.key for entry in self._store.list(layout.logs(self._run)) if self._wants(entry.key)]
        while keys and lines >= 0:
            try:
                lines -= self._store.get(keys.pop()).data.count(b"\n")
            except NotFound:
                continue
        self._after = keys[-1] if keys else ""

    def read(self) -> Iterator[Piece]:
        """What is new: of nodes whose names come before the last one read, then in name order."""
        for (attempt, rank), after in sorted(self._nodes.items()):
            if after != self._after:
                first = layout.log_fragment(self._run, attempt, rank, 0)
                yield from self._read(first[: first.rindex("-")], after)
        yield from self._read(layout.logs(self._run), self._after)

    def _read(self, prefix: str, after: str) -> Iterator[Piece]:
        for entry in self._store.list(prefix, after):
            attempt, rank, _ = layout.split_fragment(entry.key)
            if self._wants(entry.key):
                try:
                    yield Piece(attempt, self._store.get(entry.key).data)
                except NotFound:
                    continue
            if any(known[0] < attempt for known in self._nodes):
                self._nodes = {}
            self._nodes[attempt, rank] = entry.key
            self._after = max(self._after, entry.key)

    def _wants(self, key: str) -> bool:
        return self._attempt is None or layout.split_fragment(key)[0] == self._attempt
