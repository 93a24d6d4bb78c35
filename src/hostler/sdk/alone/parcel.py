"""What a checkpoint of a run by hand is in the store: the newest whole folder, the best ones, and own files.

The library's folders are whole once their COMMIT is there and never change after it, so they are linked; a
script's own files are copied, and only if nobody wrote to them meanwhile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostler.records import saved_folder
from hostler.records.saved_folder import COMMIT, Mark
from hostler.records.tree import scan

BEST = "best"


@contextmanager
def packed(folder: Path, mark: Mark | None) -> Iterator[Path | None]:
    """A folder to upload, gone afterwards; None if something in it vanished or changed: try again later."""
    staging = folder.with_name("staging")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        yield staging if _pack(folder, mark, staging) else None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def own_files(folder: Path) -> list[str]:
    """Names of what the script itself left there."""
    return [row.name for row in scan(folder).rows if not _is_ours(row.name)]


def _pack(folder: Path, mark: Mark | None, staging: Path) -> bool:
    try:
        if mark is not None:
            _link(folder / mark.name, staging / mark.name)
        for place in sorted((folder / BEST).glob("*")):
            for best in saved_folder.committed(place)[:1]:
                _link(place / best.name, staging / BEST / place.name / best.name)
        before = scan(folder)
        for name in own_files(folder):
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, staging / name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    own = {row for row in before.rows if not _is_ours(row.name)}
    return own == {row for row in scan(folder).rows if not _is_ours(row.name)}


def _link(source: Path, target: Path) -> None:
    """COMMIT first: one that is being deleted loses it first."""
    target.mkdir(parents=True)
    names = sorted(os.listdir(source), key=lambda name: name != COMMIT)
    if names[:1] != [COMMIT]:
        raise FileNotFoundError(source)
    for name in names:
        os.link(source / name, target / name)


def _is_ours(name: str) -> bool:
    first, _, rest = name.partition("/")
    return bool(rest) and (first == BEST or saved_folder.mark_of(first) is not None)
