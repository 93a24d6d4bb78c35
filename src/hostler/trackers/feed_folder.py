"""The local folder through which a run's points reach the process that feeds a tool.

open.json    what the tool is told of the run             → feeder
points.bin   packed points, appended                      → feeder
close.json   the attempt is over                          → feeder
told.json    how it goes: url, note, error, how many sent feeder →
output.log   what the tool's library printed              feeder →
files/       files that are finished, to be kept          feeder →
work/        files of the tool that are not               feeder's own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from hostler.frozen import dataclass
from hostler.records.run import handoff
from hostler.trackers.base import Closing, Opening, closing, opening, to_json

OPENING, OPEN, CLOSED, FAILED = "opening", "open", "closed", "failed"
CLOSING = "closing"  # in the store alone: the attempt is over, or about to be, and the rest is delivered


@dataclass(frozen=True)
class FeedState:
    """A tool's reported state."""

    state: str = OPENING
    url: str = ""
    note: str = ""
    error: str = ""  # one line; while it is tried again, of the try before
    sent: int = 0  # points


@dataclass(frozen=True)
class FeedFolder:
    folder: Path

    @property
    def points(self) -> Path:
        return self.folder / "points.bin"

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def output(self) -> Path:
        return self.folder / "output.log"

    def lay(self, given: Opening) -> None:
        self.files.mkdir(parents=True, exist_ok=True)
        handoff.write(self.folder / "open.json", to_json(given))

    def opening(self) -> Opening:
        return opening(handoff.read(self.folder / "open.json") or {})

    def close(self, given: Closing) -> None:
        handoff.write(self.folder / "close.json", to_json(given))

    def closing(self) -> Closing | None:
        record = handoff.read(self.folder / "close.json")
        return closing(record) if record else None

    def tell(self, told: FeedState) -> None:
        handoff.write(self.folder / "told.json", asdict(told))

    def told(self) -> FeedState:
        found: Mapping[str, object] = handoff.read(self.folder / "told.json") or {}
        return FeedState(**found)  # type: ignore[arg-type]
