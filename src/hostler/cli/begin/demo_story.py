"""Parts shared by both demos: a project in a folder of its own, a run that goes on after an accident."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hostler.records.rows import Row
from hostler.records.series.logs import LogReader
from hostler.store import Store

GOES_ON = "goes on from checkpoint"


def lay_out(folder: Path, shipped: Sequence[Path]) -> None:
    """A copy of the demo's files, kept out of whatever project lies around it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    (folder / ".hostlerignore").write_text("".join(f"!{file.name}\n" for file in shipped))
    for file in shipped:
        shutil.copyfile(file, folder / file.name)


def went_on(store: Store, row: Row) -> str:
    """The line of a run's log that says from where it goes on; empty as long as there is none."""
    log = b"".join(piece.data for piece in LogReader(store, row.id).read()).decode()
    line = next((line for line in log.splitlines() if GOES_ON in line), "")
    return line.removeprefix("[hostler] ")
