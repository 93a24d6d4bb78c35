"""Checkpoints of a gang: each node brings its own ranks' files, and a record that they are there.

A node other than the first uploads each checkpoint of the library as soon as its own ranks have written their
parts. The leader, whose COMMIT of the library names the files of all ranks, waits for the others' records and
puts the store's COMMIT over all of them; once one of them cannot come any more, the checkpoint is none. Where
a checkpoint goes is told by the library's own number, so that nobody has to ask.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hostler.attempt.folder import link
from hostler.attempt.saver import NotWhole, next_number
from hostler.errors import Fenced, HostlerError
from hostler.records import layout
from hostler.records.body import Record, decode, encode, taken_apart
from hostler.records.checkpoint import checkpoints, saved_folder
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.saved_folder import Mark
from hostler.records.checkpoint.tree import scan
from hostler.store import Store

BLOCK = 100_000  # files of one node are numbered from its rank times this
WAIT = 600.0  # seconds for the parts of all nodes
LOOK = 0.3
KEPT = 4  # checkpoints of a node that wait to be brought


class Collector:
    """The leader's side: the parts of the others."""

    def __init__(
        self,
        store: Store,
        run: str,
        attempt: int,
        nodes: int,
        procs: int,
        check: Callable[[set[int]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`check` raises NotWhole once no more parts can come from these nodes."""
        self._store, self._run, self._attempt, self._nodes = store, run, attempt, nodes
        self.ranks = range(procs)  # whose files are here
        self._check, self._clock, self._pause = check, clock, pause

    def shared(self, staging: Path) -> Mark | None:
        """The checkpoint in this folder, if other nodes have files of it."""
        for mark in saved_folder.committed(staging):
            whole = saved_folder.read(staging, mark)
            return mark if int(whole.record["world"]) > len(self.ranks) else None
        return None

    def collect(
        self, place: Place, check: Callable[[], None] = lambda: None
    ) -> tuple[list[Record], dict[str, int]]:
        """The files of all other nodes, and how many of each one's points they cover. `check` raises once it
        should not be waited for."""
        deadline, rows, positions = self._clock() + WAIT, list[Record](), dict[str, int]()
        missing, passed = set(range(1, self._nodes)), set[int]()
        prefix = layout.checkpoint_parts(self._run, place.attempt, place.step)
        while True:
            for entry in self._store.list(prefix):
                node = layout.split_part(entry.key)
                if node in missing:
                    record = decode(self._store.get(entry.key).data, entry.key)
                    with taken_apart(entry.key):
                        rows += list(record["files"])
                        positions[str(record["writer"])] = int(record["position"])
                    missing.discard(node)
            if not missing:
                return rows, positions
            check()
            self._check(missing)
            if never := missing & passed:  # had brought a later one before we looked
                raise NotWhole(f"nodes {sorted(never)} went on without saving their parts of {place.name}")
            passed = self._further(place)
            if self._clock() > deadline:
                raise NotWhole(
                    f"nodes {sorted(missing)} have not saved their parts of {place.name} within {WAIT:.0f} s"
                )
            self._pause(LOOK)

    def _further(self, place: Place) -> set[int]:
        """Nodes that have brought a later one: what they have not brought of this one never comes."""
        here = layout.checkpoint(self._run, place.attempt, place.step)
        later = [entry.key for entry in self._store.list(layout.checkpoints(self._run), f"{here}~")]
        places = ((layout.split_checkpoint(key), key) for key in later if "/parts/" in key)
        own = (layout.split_part(key) for found, key in places if found and found[0] == place.attempt)
        return {node for node in own if node is not None}


class Shards:
    """The side of another node: brings what its own ranks wrote. `tick` is called by its own thread."""

    def __init__(
        self,
        store: Store,
        run: str,
        attempt: int,
        node: int,
        procs: int,
        folder: Path,
        *,
        writer: int,
        covered: Callable[[], Record],
        say: Callable[[str], None],
    ) -> None:
        self._store, self._run, self._attempt, self._node = store, run, attempt, node
        self._ranks = range(node * procs, (node + 1) * procs)
        self._folder, self._covered, self._say = folder, covered, say
        self._writer = writer  # of its metrics
        self._known = set(saved_folder.marks(folder))  # restored, or brought
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.moved = 0.0  # as a watchman asks; silence of this node alone means nothing

    def start(self, every: float) -> None:
        self._thread = threading.Thread(target=self._loop, args=(every,), name="shards", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def tick(self) -> None:
        """Bring what is complete, oldest first; of too many, the newest."""
        complete = sorted(mark for mark in saved_folder.marks(self._folder) if self._is_new(mark))
        self._known |= set(complete[:-KEPT])
        for mark in complete[-KEPT:]:
            self._bring(mark)
            self._known.add(mark)

    def _loop(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                self.tick()
            except Fenced:
                return
            except (HostlerError, OSError) as error:
                self._say(f"the part of a checkpoint was not saved, will try again: {error}")

    def _is_new(self, mark: Mark) -> bool:
        place = self._folder / mark.name
        return mark not in self._known and all(
            (place / saved_folder.part_name(rank)).exists() for rank in self._ranks
        )

    def _bring(self, mark: Mark) -> None:
        staging = self._folder.with_name(f"part-{mark.name}")
        shutil.rmtree(staging, ignore_errors=True)
        try:
            tree_scan = scan(self._folder)
            mine = type(tree_scan)(tuple(row for row in tree_scan.rows if self._is_mine(row.name, mark)))
            if not mine.rows or not link(self._folder, staging, mine):
                return  # an old one, removed meanwhile
            place = Place(self._attempt, next_number(0, mark))
            rows = checkpoints.send(self._store, self._run, place, staging, first=self._node * BLOCK)
            position = int(self._covered()["position"])
            key = layout.checkpoint_part(self._run, place.attempt, place.step, self._node)
            self._store.put(key, encode({"files": rows, "writer": self._writer, "position": position}))
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _is_mine(self, name: str, mark: Mark) -> bool:
        folder, _, file = name.rpartition("/")
        return folder == mark.name and any(file in _files(rank) for rank in self._ranks)


def _files(rank: int) -> Sequence[str]:
    return saved_folder.tensors_name(rank), saved_folder.state_name(rank), saved_folder.part_name(rank)
