"""Reads runs from TensorBoard's folders: each folder with event files is a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hostler.errors import MissingError
from hostler.records.series.points import Point
from hostler.trackers import events
from hostler.trackers.past import Past, Say


def read(where: str, say: Say) -> Iterator[Past]:
    root = Path(where)
    if not root.is_dir():
        raise MissingError(
            f"folder {where} does not exist", hint="give tensorboard:FOLDER, as for tensorboard --logdir"
        )
    for folder, below, names in os.walk(root):
        below.sort()
        files = sorted(name for name in names if "tfevents" in name and not name.startswith("."))
        if files:
            yield _run(root, Path(folder), files, say)


def _run(root: Path, folder: Path, files: list[str], say: Say) -> Past:
    points: list[Point] = []
    for name in files:
        if not events.is_one(folder / name):
            say(f"{folder / name} is not an event file, or an incomplete one")
        for point in events.read(folder / name):
            if point.values:
                points.append(point)
            else:  # begun again at this step: what was there after it is not shown
                points = [one for one in points if one.step < point.step]
    name = folder.relative_to(root).as_posix()
    times = [point.time for point in points]
    began, ended = (min(times), max(times)) if times else (None, None)
    group = root.absolute().name
    return Past(name, name if name != "." else group, group, started=began, ended=ended, points=points)
