"""Notes from ranks to rank 0 about their parts of a checkpoint: written, or failed.

On one machine a file beside the part tells it; from other machines, a note on the board. A rank writes its
checkpoints one after the other, so that who has told of a later one, or is gone, has nothing more to tell of
an earlier one: rank 0 does not wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from hostler.errors import StoreError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import COMMIT, FileSum, Mark
from hostler.sdk.checkpoint import part
from hostler.sdk.ranks.board import Board, Note

WAIT = 600.0  # seconds that rank 0 waits for the others' files
LOOK = 0.02


class Told(Protocol):
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


def told(folder: Path, board: Board | None) -> Told:
    """`board`: where the ranks of this run leave notes for each other, if any."""
    return ToldFromAfar(board) if board is not None and not board.shared else ToldHere(folder, board)


def wait_for(
    told: Told,
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
