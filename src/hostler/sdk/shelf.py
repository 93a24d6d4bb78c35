"""The folder where a run's checkpoints lie: the newest whole one is found, new ones are put, old ones go.

Several ranks share it: each writes its own files and then says so; rank 0 commits once all have.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import DamagedError, HostlerError, NewerFormatError, StoreError, UsageError
from hostler.records import saved_folder
from hostler.records.saved_folder import COMMIT, FileSum, Mark, Saved
from hostler.sdk import part
from hostler.sdk.board import Board
from hostler.sdk.part import Part

RANKS_WAIT = 600.0  # seconds that rank 0 waits for the others' files
LOOK = 0.02


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
        """`board`: where ranks on other machines, whose files are not here, tell of theirs."""
        self._board = board
        self._folder, self._keep, self._say = folder, max(1, keep), say
        self._rank, self._world = rank, world

    def newest(self) -> tuple[Saved, Part] | None:
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
        """Durable when this returns, for rank 0 with the files of all ranks; then old ones are removed."""
        place = self._folder / mark.name
        place.mkdir(parents=True, exist_ok=True)
        try:
            rows = part.write(place, self._rank, tree, header, data)
            part.sync_folder(place)
            if self._rank:
                part.write_whole(place / saved_folder.part_name(self._rank), _part(rows))
                self._told(mark, rows)
                return
            rows += self._others(place)
            files = [row.record() for row in rows]
            record = {"step": mark.step, "world": self._world, "saved": time.time(), **facts, "files": files}
            part.write_whole(place / COMMIT, saved_folder.seal(record))
            part.sync_folder(self._folder)
            self._forget_notes(mark)
        except OSError as error:
            self._give_up(mark, error)
            raise
        self._prune(self._keep)

    def remove(self, mark: Mark) -> None:
        saved_folder.remove(self._folder, mark)

    def _read(self, saved: Saved) -> Part:
        world = saved.record["world"]
        if world != self._world and not env.elastic():
            raise UsageError(
                f"{saved.mark.name} was saved by {world} processes, and this run has {self._world}",
                hint="start as many as before, or allow fewer: resources.min_nodes",
            )
        if world != self._world and self._rank == 0:
            self._say(f"{saved.mark.name} was saved by {world} processes: {self._world} go on from it")
        rank = self._rank % world
        own = {saved_folder.state_name(rank), saved_folder.tensors_name(rank)}
        for row in saved.files:  # all ranks must choose the same one: each looks at all files
            if row.name not in own:
                _verify(saved, row)
        return part.read(saved, rank)

    def _told(self, mark: Mark, rows: list[FileSum]) -> None:
        """On another machine than rank 0: it is told, and what is old goes from here, too."""
        if self._board is None:
            return
        self._board.post_surely(_note(mark.name, self._rank), {"files": [row.record() for row in rows]})
        if env.local_rank() == 0:
            for old in saved_folder.marks(self._folder)[self._keep + 1 :]:
                saved_folder.remove(self._folder, old)

    def _forget_notes(self, mark: Mark) -> None:
        for rank in range(1, self._world) if self._board else ():
            assert self._board is not None
            self._board.clear(_note(mark.name, rank))

    def _others(self, place: Path) -> list[FileSum]:
        rows: list[FileSum] = []
        deadline = time.monotonic() + RANKS_WAIT
        for rank in range(1, self._world):
            while (found := self._part_of(place, rank)) is None:
                if time.monotonic() > deadline:
                    raise StoreError(f"rank {rank} has not written its part of {place.name}")
                time.sleep(LOOK)
            rows += found
        return rows

    def _part_of(self, place: Path, rank: int) -> list[FileSum] | None:
        if self._board is not None:
            note = self._board.read(_note(place.name, rank))
            return None if note is None else saved_folder.sums(note["files"])
        path = place / saved_folder.part_name(rank)
        if not path.exists():
            return None
        return saved_folder.sums(saved_folder.unseal(path.read_bytes(), path.name)["files"])

    def _give_up(self, mark: Mark, error: OSError) -> None:
        if self._rank == 0:
            saved_folder.remove(self._folder, mark)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._prune(1)  # room for the next try

    def _prune(self, keep: int) -> None:
        for mark in saved_folder.committed(self._folder)[keep:]:
            saved_folder.remove(self._folder, mark)

    def _clear(self) -> None:
        """What a killed save left; damaged ones stay for whoever wants to look."""
        if self._rank == 0:
            whole = set(saved_folder.committed(self._folder))
            for mark in saved_folder.marks(self._folder):
                if mark not in whole:
                    saved_folder.remove(self._folder, mark)


def _verify(saved: Saved, row: FileSum) -> None:
    try:
        saved_folder.check_file(saved.folder / row.name, row)
    except FileNotFoundError:
        raise DamagedError(f"{row.name} is missing") from None


def _note(mark: str, rank: int) -> str:
    return f"part-{mark}-{rank}"


def _part(rows: list[FileSum]) -> bytes:
    return saved_folder.seal({"files": [row.record() for row in rows]})


def _none_is_good(folder: Path, bad: list[HostlerError]) -> HostlerError:
    if all(isinstance(error, NewerFormatError) for error in bad):
        return bad[0]
    return DamagedError(
        f"no checkpoint in {folder} can be used: {bad[0].message}",
        hint='resume="never" starts from the beginning and leaves them where they are',
    )
