"""Cache of a sweep on this machine's disk, so that only new parts are read again.

Parts are segments, written whole and never changed. A part that is not what was written is left alone and
read anew; so is every part of a sweep that was deleted and submitted again, or of another store at the same
address. Several readers may use it at once. Much is written while the reader goes on; who reads again in this
process waits for it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hostler import env
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.records.run import log as run_log
from hostler.records.series import merging, segments
from hostler.records.series.segments import Segment
from hostler.store import Store
from hostler.store.base import Entry

FORM = 3  # of the parts: those of an older hostler have lists of texts, or lack the steps of extremes
MANY = 8  # parts, which are then made one
MUCH = 1 << 20  # bytes
PAUSE = 0.1  # seconds for whoever reads to go on first
SETTLED = 2.0  # seconds: a name that comes within the tick of a folder's time would not change it


class Cache:
    """The cache of one sweep of one store."""

    def __init__(self, store: Store, sweep: str) -> None:
        place = hashlib.sha256(store.url.encode()).hexdigest()[:16]
        self._folder, self._sweep = env.cache_dir() / "frames" / place / sweep, sweep
        _wait_for(self._folder)
        self._identity = _identity(store, sweep)
        self.parts = list(self._load())

    @property
    def numbers(self) -> set[int]:
        """Numbers of the segments that these parts hold."""
        return {n for part in self.parts for n in part.header["numbers"]}

    def heads(self, store: Store) -> dict[str, int]:
        """run → number of the newest entry of its log. Nothing is listed where the store shows that no name
        came or went since the last time."""
        log = next((row for row in store.list(layout.sweep(self._sweep), deep=False) if _is_log(row)), None)
        mark = f"{self._identity} {log.etag}" if log and log.etag else ""
        if mark and (known := self._known_heads(mark)) is not None:
            return known
        looked = time.time()
        found = run_log.heads(store, self._sweep)
        if log and mark and looked - log.modified > SETTLED:
            self._behind(100 * len(found), lambda: self._write_heads(mark, found))
        return found

    def _write_heads(self, mark: str, found: dict[str, int]) -> None:
        self._write([json.dumps({"mark": mark, "heads": found}).encode()], "heads.json")

    def _known_heads(self, mark: str) -> dict[str, int] | None:
        try:
            record = json.loads((self._folder / "heads.json").read_bytes())
            return dict(record["heads"]) if record["mark"] == mark else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def add(self, numbers: Iterable[int], found: Sequence[Segment]) -> None:
        """Keep these, which hold the segments with these numbers and runs that are in none."""
        if self._identity and found:
            size, known = sum(len(part.blocks) for part in found), sorted(numbers)
            self._behind(size, lambda: self._add(known, found))

    def _add(self, numbers: list[int], found: Sequence[Segment]) -> None:
        old = self._files() if len(self.parts) >= MANY else []
        if old:
            found = [*self.parts, *found]
            numbers = sorted({*numbers, *self.numbers})
        pieces = merging.merge(self._sweep, found, identity=self._identity, numbers=numbers)
        if self._write(pieces, os.urandom(8).hex()):
            for path in old:
                path.unlink(missing_ok=True)

    def _behind(self, size: int, act: Callable[[], None]) -> None:
        """Do it now, or if it is much, when the reader has gone on."""
        if size < MUCH:
            act()
            return
        before = _writers.get(self._folder)

        def write() -> None:
            time.sleep(PAUSE)
            if before:
                before.join()
            act()

        thread = threading.Thread(target=write, name="hostler-cache")  # a process waits for it at its end
        _writers[self._folder] = thread
        thread.start()

    def _write(self, pieces: Iterable[bytes | memoryview], name: str) -> bool:
        """False without room or rights: then it is read again."""
        path = self._folder / f"{os.urandom(8).hex()}.new"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                file.writelines(pieces)
            path.rename(self._folder / name)
        except OSError:
            return False
        return True

    def _load(self) -> Iterable[Segment]:
        for path in self._files():
            try:
                part = segments.decode(_mapped(path), path.name)
                if part.header["identity"] == self._identity:
                    yield part
                    continue
            except (HostlerError, OSError, ValueError, KeyError, TypeError, IndexError):
                pass  # damaged: as good as not there
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if not path.suffix)
        except OSError:
            return []


_writers: dict[Path, threading.Thread] = {}  # by folder, the newest that writes to it in this process


def _wait_for(folder: Path) -> None:
    writer = _writers.pop(folder, None)
    if writer:
        writer.join()


def _is_log(row: Entry) -> bool:
    return row.key.endswith("/log/")


def _identity(store: Store, sweep: str) -> str:
    """Another one if the sweep was submitted anew under its name, or if its parts have an older form."""
    first = next(iter(store.list(layout.specs(sweep))), None)
    return f"{first.key} {first.etag} {FORM}" if first else ""


def _mapped(path: Path) -> memoryview:
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
