"""The folder of a run's checkpoints: finds the newest complete one, adds new ones, deletes old ones.

Several ranks share it: each writes its own files and then says so; rank 0 commits once all have. A rank that
has none says that, too: nobody waits for it.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from hostler import env
from hostler.errors import DamagedError, HostlerError, NewerFormatError, StoreError, UsageError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import COMMIT, FileSum, Mark, SavedCheckpoint
from hostler.sdk.checkpoint import part
from hostler.sdk.checkpoint.part import RankPart
from hostler.sdk.ranks.board import Board, Note


class Shelf:
    def __init__(
        self,
        folder: Path,
        *,
        keep: int,
        rank: int,
        world: int,
        say: Callable[[str], None],
        board: Board | None = None,
    ) -> None:
        """`board`: where several ranks leave notes for each other; files of other machines are not here."""
        self._apart = board is not None and not board.shared
        self._told = told(folder, board)
        self._folder, self._keep, self._say = folder, max(1, keep), say
        self._rank, self._world = rank, world
        self._pruning, self._is_due = Lock(), False

    def newest(self) -> tuple[SavedCheckpoint, RankPart] | None:
        """The newest one that is whole; what is not, is said. Leftovers of a killed save are removed."""
        bad: list[HostlerError] = []
        for mark in saved_folder.committed(self._folder):
            try:
                saved = saved_folder.read(self._folder, mark)
                found = (saved, self._read(saved))
            except FileNotFoundError:
                continue
            except (DamagedError, NewerFormatError) as error:
                bad.append(error)
                self._say(
                    f"checkpoint {mark.name} is passed over ({error.message}): the one before it is used"
                )
                continue
            self._clear()
            return found
        if bad:
            raise _none_is_good(self._folder, bad)
        self._clear()
        return None

    def put(
        self, mark: Mark, tree: Mapping[str, Any], header: bytes, data: memoryview, facts: Mapping[str, Any]
    ) -> None:
        """Durable when this returns, for rank 0 with the files of all ranks. `prune` comes after it."""
        self.prune()
        place = self._folder / mark.name
        place.mkdir(parents=True, exist_ok=True)
        try:
            rows = part.write(place, self._rank, tree, header, data)
            part.sync_folder(place)
            if self._rank:
                self._tell(mark, rows)
                return
            rows += wait_for(self._told, mark, self._others)
            files = [row.record() for row in rows]
            record = {"step": mark.step, "world": self._world, "saved": time.time(), **facts, "files": files}
            part.write_whole(place / COMMIT, saved_folder.seal(record))
            part.sync_folder(self._folder)
            self._is_due = True
        except (OSError, StoreError) as error:
            self._give_up(mark, error)
            raise
        finally:
            if self._rank == 0:
                self._told.forget(mark, self._others)

    def prune(self) -> None:
        """Remove those that the last one makes old. It takes a while for large ones; the next one is not
        written before it is done."""
        with self._pruning:
            try:
                if self._is_due:
                    self._prune(self._keep)
                self._is_due = False
            except OSError as error:
                self._say(f"checkpoints before the last {self._keep} cannot be removed: {error}")

    def refuse(self, mark: Mark) -> None:
        """There will be no part of this one from here: rank 0 need not wait for it."""
        if self._rank:
            try:
                self._told.tell(mark, self._rank, None)
            except (OSError, HostlerError):
                pass  # it hears of a later one, or waits no longer than it may

    def remove(self, mark: Mark) -> None:
        saved_folder.remove(self._folder, mark)

    def _read(self, saved: SavedCheckpoint) -> RankPart:
        world = saved.record["world"]
        if world != self._world and not env.elastic():
            raise UsageError(
                f"{saved.mark.name} was saved by {world} processes, but this run has {self._world}",
                hint=f"start {world} processes, or allow fewer: resources.min_nodes",
            )
        if world != self._world and self._rank == 0:
            self._say(f"{saved.mark.name} was saved by {world} processes: now {self._world} resume from it")
        rank = self._rank % world
        own = {saved_folder.state_name(rank), saved_folder.tensors_name(rank)}
        for row in saved.files:  # all ranks must choose the same one: each looks at all files
            if row.name not in own:
                _verify(saved, row)
        return part.read(saved, rank)

    @property
    def _others(self) -> range:
        return range(1, self._world)

    def _tell(self, mark: Mark, rows: list[FileSum]) -> None:
        """Rank 0 is told; where it is on another machine, what is old goes from here, too."""
        if self._apart:  # for the worker here, who brings it to the store
            ToldHere(self._folder).tell(mark, self._rank, rows)
        self._told.tell(mark, self._rank, rows)
        if self._apart and env.local_rank() == 0:
            for old in saved_folder.marks(self._folder)[self._keep + 1 :]:
                saved_folder.remove(self._folder, old)

    def _give_up(self, mark: Mark, error: OSError | StoreError) -> None:
        self.refuse(mark)
        if self._rank == 0:
            saved_folder.remove(self._folder, mark)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._prune(1)  # room for the next try

    def _prune(self, keep: int) -> None:
        for mark in saved_folder.committed(self._folder)[keep:]:
            saved_folder.remove(self._folder, mark)

    def _clear(self) -> None:
        """Delete the remains of killed saves; damaged checkpoints stay for inspection."""
        if self._rank == 0:
            whole = set(saved_folder.committed(self._folder))
            for mark in saved_folder.marks(self._folder):
                if mark not in whole:
                    saved_folder.remove(self._folder, mark)


def _verify(saved: SavedCheckpoint, row: FileSum) -> None:
    try:
        saved_folder.check_file(saved.folder / row.name, row)
    except FileNotFoundError:
        raise DamagedError(f"{row.name} is missing") from None


def _none_is_good(folder: Path, bad: list[HostlerError]) -> HostlerError:
    if all(isinstance(error, NewerFormatError) for error in bad):
        return bad[0]
    return DamagedError(
        f"no checkpoint in {folder} can be used: {bad[0].message}",
        hint='resume="never" starts from the beginning and leaves them where they are',
    )


# Notes from ranks to rank 0 about their parts of a checkpoint: written, or failed.
#
# On one machine a file beside the part tells it; from other machines, a note on the board. A rank writes its
# checkpoints one after the other: one that has told of a later checkpoint, or is gone, has nothing more to
# tell of an earlier one, and rank 0 does not wait for it.


WAIT = 600.0  # seconds that rank 0 waits for the others' files
LOOK = 0.02


class PartReports(Protocol):
    def tell(self, mark: Mark, rank: int, rows: list[FileSum] | None) -> None:
        """Tell rank 0 before returning; None: the part could not be written."""

    def of(self, mark: Mark, rank: int) -> Note | None: ...

    def over(self, mark: Mark, rank: int) -> str:
        """Why nothing more will be told of it; empty while something may be."""

    def forget(self, mark: Mark, ranks: Iterable[int]) -> None: ...


class ToldHere:
    """Ranks that share a folder; `board`, where there is one, knows who is alive."""

    def __init__(self, folder: Path, board: Board | None = None) -> None:
        self._folder, self._board = folder, board

    def tell(self, mark: Mark, rank: int, rows: list[FileSum] | None) -> None:
        place = self._folder / mark.name
        place.mkdir(parents=True, exist_ok=True)
        part.write_whole(place / saved_folder.part_name(rank), saved_folder.seal(_record(rows)))

    def of(self, mark: Mark, rank: int) -> Note | None:
        path = self._folder / mark.name / saved_folder.part_name(rank)
        try:
            return saved_folder.unseal(path.read_bytes(), path.name)
        except FileNotFoundError:
            return None

    def over(self, mark: Mark, rank: int) -> str:
        if self._board is not None and not self._board.alive(f"ranks/{rank}"):
            return "is gone"
        for later in saved_folder.marks(self._folder):
            place = self._folder / later.name
            if later <= mark or (place / COMMIT).exists():  # a whole one may be of another course
                continue
            if (place / saved_folder.part_name(rank)).exists():
                return f"went on to {later.name}"
        return ""

    def forget(self, mark: Mark, ranks: Iterable[int]) -> None:
        """They go with the checkpoint."""


class ToldFromAfar:
    def __init__(self, board: Board) -> None:
        self._board = board

    def tell(self, mark: Mark, rank: int, rows: list[FileSum] | None) -> None:
        self._board.post_surely(_note(mark, rank), _record(rows))
        self._board.post(_newest(rank), {"step": mark.step, "again": mark.again})

    def of(self, mark: Mark, rank: int) -> Note | None:
        return self._board.read(_note(mark, rank))

    def over(self, mark: Mark, rank: int) -> str:
        if not self._board.alive(f"ranks/{rank}"):
            return "is gone"
        newest = self._board.read(_newest(rank)) or {"step": -1, "again": 0}
        later = Mark(int(newest["step"]), int(newest["again"]))
        return f"went on to {later.name}" if later > mark else ""

    def forget(self, mark: Mark, ranks: Iterable[int]) -> None:
        for rank in ranks:
            self._board.clear(_note(mark, rank))


def told(folder: Path, board: Board | None) -> PartReports:
    """`board`: where the ranks of this run leave notes for each other, if any."""
    return ToldFromAfar(board) if board is not None and not board.shared else ToldHere(folder, board)


def wait_for(
    told: PartReports,
    mark: Mark,
    ranks: Iterable[int],
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> list[FileSum]:
    """The files of these ranks; StoreError as soon as one of them will have none."""
    rows, deadline = list[FileSum](), clock() + WAIT
    for rank in ranks:
        while True:
            over = told.over(mark, rank)  # asked first: what was told before that is there
            found = told.of(mark, rank)
            if found is not None:
                break
            if over:
                raise StoreError(f"rank {rank} {over} without writing its part of {mark.name}")
            if clock() > deadline:
                raise StoreError(f"rank {rank} has not written its part of {mark.name} within {WAIT:.0f} s")
            pause(LOOK)
        if found["files"] is None:
            raise StoreError(f"rank {rank} could not write its part of {mark.name}")
        rows += saved_folder.sums(found["files"])
    return rows


def _record(rows: list[FileSum] | None) -> dict[str, list[object] | None]:
    return {"files": None if rows is None else [row.record() for row in rows]}


def _note(mark: Mark, rank: int) -> str:
    return f"part-{mark.name}-{rank}"


def _newest(rank: int) -> str:
    return f"newest-part-{rank}"
