"""What of a checkpoint folder the library wrote, the newest whole checkpoint of each place; and the rest.

A checkpoint with a COMMIT is whole and never changes: it is taken at once, as links. One without is being
written, or was when its process died: it is left alone. What else is in the folder is the script's own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hostler.errors import DamagedError
from hostler.records import saved_folder
from hostler.records.saved_folder import COMMIT, FileSum, Mark
from hostler.records.tree import TreeScan


@dataclass(frozen=True)
class Split:
    whole: TreeScan  # files of the newest whole checkpoints
    others: TreeScan  # the script's own files

    @property
    def all(self) -> TreeScan:
        """What a checkpoint of the folder is."""
        return TreeScan(tuple(sorted((*self.whole.rows, *self.others.rows), key=lambda row: row.name)))


def split(scanned: TreeScan) -> Split:
    newest: dict[str, Mark] = {}
    for row in scanned.rows:
        place = PurePosixPath(row.name)
        mark = saved_folder.mark_of(place.parent.name)
        if mark and place.name == COMMIT:
            above = str(place.parent.parent)
            newest[above] = max(newest.get(above, mark), mark)
    chosen = {f"{'' if above == '.' else above + '/'}{mark.name}/" for above, mark in newest.items()}
    whole = [row for row in scanned.rows if any(row.name.startswith(one) for one in chosen)]
    others = [row for row in scanned.rows if not _is_of_library(row.name)]
    return Split(TreeScan(tuple(whole)), TreeScan(tuple(others)))


def link(folder: Path, target: Path, rows: TreeScan) -> bool:
    """The files under `target` as well, without a copy where the disk can; False if one has vanished."""
    for row in rows.rows:
        to = target / row.name
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(folder / row.name, to)
        except FileNotFoundError:
            return False
        except OSError:
            shutil.copy2(folder / row.name, to)
    return True


def check(folder: Path, rows: TreeScan, ranks: Container[int] | None = None) -> None:
    """DamagedError unless every byte of these checkpoints is what was written; of these ranks alone, where
    others wrote theirs on other machines."""
    for row in rows.rows:
        place = PurePosixPath(row.name)
        mark = saved_folder.mark_of(place.parent.name)
        if mark and place.name == COMMIT:
            saved = saved_folder.read(folder / place.parent.parent, mark)
            for file in saved.files:
                if ranks is None or saved_folder.rank_of(file.name) in ranks:
                    _check(saved.folder / file.name, file)


def logged(folder: Path) -> int | None:
    """How many points the run had logged when the newest checkpoint was made; None if nobody knows."""
    for mark in saved_folder.committed(folder):
        points = saved_folder.read(folder, mark).record.get("points")
        return int(points) if points is not None else None
    return None


def _check(path: Path, file: FileSum) -> None:
    try:
        saved_folder.check_file(path, file)
    except FileNotFoundError:
        raise DamagedError(f"{path.parent.name} has no {file.name}") from None


def _is_of_library(name: str) -> bool:
    return any(saved_folder.mark_of(part) for part in PurePosixPath(name).parent.parts)
