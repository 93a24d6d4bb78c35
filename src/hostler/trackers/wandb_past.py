"""Reads runs of Weights & Biases: from its folders without its library, or from its server with it.

A run's file is a log of records in blocks of 32 KiB, in LevelDB's form; each record is a message. One that
was cut short (its writer was killed) ends the file.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler.errors import MachineError, MissingError
from hostler.records.series.points import Point
from hostler.spec.states import ALL, DONE, FAILED, RUNNING
from hostler.trackers import registry, wire
from hostler.trackers.past import Past, Say

BLOCK = 32 << 10
_START = b":W&B"
_HEAD = struct.Struct("<IHB")  # checksum, length, kind
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_STATES = {"finished": DONE, "running": RUNNING}


def read(where: str, say: Say) -> Iterator[Past]:
    """Runs of a folder, or of `entity/project` on the server if no such folder exists."""
    folder = Path(where)
    if folder.is_dir():
        yield from _of_files(sorted(folder.rglob("run-*.wandb")), say)
    elif folder.suffix == ".wandb" and folder.is_file():
        yield from _of_files([folder], say)
    elif where.count("/") == 1 and not where.startswith((".", "/", "~")):
        yield from _of_server(where)
    else:
        raise MissingError(f"folder {where} does not exist", hint="give wandb:FOLDER or wandb:ENTITY/PROJECT")


def _of_files(paths: Sequence[Path], say: Say) -> Iterator[Past]:
    """A run that went on has several files, in order of their folders' names."""
    runs: dict[str, _RunFiles] = {}
    for path in paths:
        files = runs.setdefault(path.stem, _RunFiles()).read(path)
        if not files.run:
            say(f"{path} is not a W&B file, or holds nothing of its run yet")
    for files in runs.values():
        if files.run:
            yield files.past()


@dataclass
class _RunFiles:
    """The content of one run's files."""

    run: bytes = b""
    config: dict[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    axis: str = "_step"
    state: str = RUNNING
    said: str = ""  # by hostler: W&B itself knows two ends
    ended: float | None = None

    def read(self, path: Path) -> _RunFiles:
        for record in _records(path.read_bytes()):
            try:
                for number, _, value in wire.fields(record):
                    if isinstance(value, bytes):
                        self._take(number, value)
            except wire.PartialMessage:
                break
        return self

    def past(self) -> Past:
        def said(number: int) -> str:
            return wire.first(self.run, number).decode("utf-8", "replace")

        began = wire.first(self.run, 17)
        return Past(
            id=said(1),
            name=said(8) or said(1),
            group=said(6) or said(3),
            state=self.state,
            params=self.config,
            tags=tuple(tag.decode("utf-8", "replace") for tag in wire.all_of(self.run, 10)),
            host=said(13),
            started=min(_times(began, self.points), default=None),
            ended=self.ended,
            points=self.points,
        )

    def _take(self, number: int, value: bytes) -> None:
        if number == 17:
            self.run, self.state, self.said = value, RUNNING, ""
            self._configure(wire.first(value, 4))
        elif number == 5:
            self._configure(value)
        elif number == 12 and wire.first(value, 2) == b"*":  # the axis of all metrics
            self.axis = wire.first(value, 4).decode("utf-8", "replace") or self.axis
        elif number == 2:
            self._row(_items(value, 1))
        elif number == 3:
            state = _items(value, 1).get("state")
            self.said = state if isinstance(state, str) and state in ALL else self.said
        elif number == 18:
            self.state = self.said or (FAILED if wire.whole(value, 1) else DONE)

    def _configure(self, message: bytes) -> None:
        for name, value in _items(message, 1).items():
            if name != "_wandb":
                self.config[name] = value
        for gone in wire.all_of(message, 2):
            self.config.pop(wire.first(gone, 1).decode("utf-8", "replace"), None)

    def _row(self, row: Mapping[str, Any]) -> None:
        point = _point(row, self.axis)
        if point is not None:
            self.points.append(point)
            self.ended = point.time or self.ended


def _times(began: bytes, points: Sequence[Point]) -> list[float]:
    """The run's start, as far as it is known."""
    said = [wire.whole(began, 1) + wire.whole(began, 2) / 1e9] if began else []
    return [*said, *(point.time for point in points[:1] if point.time)]


def _items(message: bytes, number: int) -> dict[str, Any]:
    items: dict[str, Any] = {}
    for item in wire.all_of(message, number):
        names = wire.all_of(item, 2) or [wire.first(item, 1)]
        text = wire.first(item, 16)
        try:
            items[".".join(name.decode("utf-8", "replace") for name in names)] = json.loads(text)
        except ValueError:
            continue
    return items


def _point(row: Mapping[str, Any], axis: str) -> Point | None:
    """The numbers of a row of history; other values are left out."""
    step = row.get(axis, row.get("_step"))
    values = {
        name: number
        for name, value in row.items()
        if not name.startswith("_") and name != axis and (number := _number(value)) is not None
    }
    if not values or not isinstance(step, (int, float)):
        return None
    return Point(int(step), float(row.get("_timestamp") or 0.0), values)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    return float(value.lower()) if value in ("NaN", "Infinity", "-Infinity") else None


def _records(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_START):
        return
    at, parts = 7, b""
    while at + _HEAD.size <= len(data):
        room = BLOCK - at % BLOCK
        if room < _HEAD.size:
            at += room
            continue
        crc, length, kind = _HEAD.unpack_from(data, at)
        piece = data[at + _HEAD.size : at + _HEAD.size + length]
        if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or len(piece) < length:
            return
        if crc != zlib.crc32(piece, zlib.crc32(bytes([kind]))):
            return
        at += _HEAD.size + length
        parts = piece if kind in (_FULL, _FIRST) else parts + piece
        if kind in (_FULL, _LAST):
            yield parts


def _of_server(path: str) -> Iterator[Past]:
    try:
        import wandb
    except ModuleNotFoundError:
        raise MachineError(
            "wandb: reading its server needs the package wandb", hint=registry.remedy("wandb")
        ) from None
    from hostler.trackers.wandb import answers  # which needs it

    answers()
    try:
        yield from _runs(wandb.Api().runs(path))
    except (wandb.Error, ValueError) as error:
        raise MachineError(f"W&B: {str(error).splitlines()[0][:200]}", hint="wandb login") from None


def _runs(runs: Iterable[Any]) -> Iterator[Past]:
    for run in runs:
        rows = list(run.scan_history())
        axis = "step" if all("step" in row for row in rows) else "_step"
        points = [p for row in rows if (p := _point(row, axis))]
        yield Past(
            id=run.id,
            name=run.name,
            group=run.group or run.project,
            state=_STATES.get(run.state, FAILED),
            params={name: value for name, value in run.config.items() if not name.startswith("_")},
            tags=tuple(run.tags),
            started=points[0].time if points else None,
            ended=points[-1].time if points else None,
            points=points,
        )
