"""TensorBoard: event files in pieces that never change once finished, or in a user's folder.

Of each attempt there are files of its own, which begin with what attempts before it have measured; theirs go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from hostler.records.series.points import Point
from hostler.spec.names import slug
from hostler.trackers.base import Closing, Opened, Opening
from hostler.trackers.events import PREFIX, EventWriter


class TensorBoard:
    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._writer: EventWriter | None = None
        self._number = 0

    def open(self, opening: Opening) -> Opened:
        self._attempt = opening.attempt
        given = opening.options.get("dir")
        self._own = not given
        self._folder = _below(Path(given), opening) if given else Path(opening.folder, "files")
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.glob(f"{PREFIX}*.hostler-*"):
            old.unlink()
        return Opened(url=str(self._folder) if given else "")

    def log(self, points: Sequence[Point]) -> None:
        for point in points:
            self._ready().add(point)
        if self._file and not self._own:
            self._file.flush()

    def flush(self) -> None:
        """Finish the current piece of our own files, since a store's objects cannot grow."""
        if self._own:
            self._finish()

    def close(self, closing: Closing) -> None:
        self._finish()

    def _ready(self) -> EventWriter:
        if self._writer is None:
            self._path = self._folder / f"{'.' * self._own}{self._name()}"
            self._file = open(self._path, "wb")  # noqa: SIM115
            self._writer = EventWriter(self._file, time.time())
        return self._writer

    def _name(self) -> str:
        """In order of attempts and pieces, as TensorBoard reads them by name."""
        self._number += 1
        return f"{PREFIX}{self._attempt:06d}{self._number:06d}.hostler-{self._attempt}"

    def _finish(self) -> None:
        if self._file is None:
            return
        self._file.close()
        if self._own:
            self._path.rename(self._path.with_name(self._path.name.lstrip(".")))
        self._file = self._writer = None


def _below(folder: Path, opening: Opening) -> Path:
    return folder / slug(opening.sweep) / opening.run
