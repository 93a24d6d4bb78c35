"""Output of a run, as fragments in the store: one writer per attempt and rank, read in name order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.store import NotFound, Store
from hostler.store.base import Entry

Say = Callable[[str], None]


def fragments(store: Store, prefix: str, after: str = "", say: Say = lambda line: None) -> Iterator[Entry]:
    """Fragments under a prefix, in name order. `say` gets what has another name: it is left out, so that
    neither its text is shown nor its name, which may be the last of all, ends the reading."""
    for entry in store.list(prefix, after):
        if layout.split_fragment(entry.key):
            yield entry
        else:
            say(f"{entry.key} is left out: a piece of a run's output has no such name")


class LogWriter:
    def __init__(self, store: Store, run: str, attempt: int, rank: int = 0) -> None:
        self._store, self._run, self._attempt, self._rank = store, run, attempt, rank
        self._sequence = 0

    def write(self, data: bytes) -> None:
        """Put the next piece; after an error the same piece may be written again, with the same number."""
        key = layout.log_fragment(self._run, self._attempt, self._rank, self._sequence)
        self._store.put(key, data)
        self._sequence += 1

    def go_on(self) -> bytes:
        """Go on after what this attempt's writer, which is dead, has brought into the store: that text."""
        text: list[bytes] = []
        for entry in self._store.list(layout.logs(self._run)):
            attempt, rank, sequence = layout.split_fragment(entry.key) or (0, 0, 0)
            if (attempt, rank) == (self._attempt, self._rank):
                text.append(self._store.get(entry.key).data)
                self._sequence = sequence + 1
        return b"".join(text)


@dataclass(frozen=True)
class LogPiece:
    attempt: int
    data: bytes


class LogReader:
    """Reads a run's log from where it stopped last time."""

    def __init__(
        self,
        store: Store,
        run: str,
        attempt: int | None = None,
        *,
        later_than: int = 0,
        say: Say = lambda line: None,
    ) -> None:
        """`say` gets names of what is no output of a run, as often as they are met."""
        self._store, self._run, self._attempt, self._say = store, run, attempt, say
        self._after = layout.log_fragment(run, later_than + 1, 0, 0)[:-1] if later_than else ""
        self._ends: dict[tuple[int, int], str] = {}  # (attempt, rank) of the newest attempt → last fragment

    def start_near_end(self, lines: int) -> None:
        """Let the first read begin with the fragment that holds the last `lines` lines, or one before it."""
        every = fragments(self._store, layout.logs(self._run), say=self._say)
        keys = [entry.key for entry in every if self._wants(entry.key)]
        while keys and lines >= 0:
            try:
                lines -= self._store.get(keys.pop()).data.count(b"\n")
            except NotFound:
                continue
        self._after = keys[-1] if keys else ""
        for key in keys:
            self._passed(key)

    def read(self) -> Iterator[LogPiece]:
        """New pieces: of nodes whose names come before the last one read, then in name order."""
        attempt, last = max(self._ends, default=(0, 0))
        for rank in range(last):
            first = layout.log_fragment(self._run, attempt, rank, 0)
            yield from self._read(first[: first.rindex("-")], self._ends.get((attempt, rank), ""))
        yield from self._read(layout.logs(self._run), self._after)

    def _read(self, prefix: str, after: str) -> Iterator[LogPiece]:
        for entry in fragments(self._store, prefix, after, self._say):
            if attempt := self._wants(entry.key):
                try:
                    yield LogPiece(attempt, self._store.get(entry.key).data)
                except NotFound:
                    continue
            self._passed(entry.key)
            self._after = max(self._after, entry.key)

    def _passed(self, key: str) -> None:
        found = layout.split_fragment(key)
        if found is None:
            return
        attempt, rank, _ = found
        if any(known < attempt for known, _ in self._ends):
            self._ends = {}
        self._ends[attempt, rank] = key

    def _wants(self, key: str) -> int:
        """The attempt of a fragment that is wanted; 0 of another."""
        found = layout.split_fragment(key)
        return found[0] if found and self._attempt in (None, found[0]) else 0
