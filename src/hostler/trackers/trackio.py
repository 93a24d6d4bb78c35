"""trackio: its database in a folder that `trackio show` shows. Nothing leaves the machine.

Rows go into the database by trackio's own storage, not by `trackio.init`: that one finds a run by its name,
gives every row the time at which it arrives, and keeps errors to itself. What an earlier attempt has written
of the run is replaced, and a row has an id of its own: written twice, it is there once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing as closed
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hostler import env
from hostler.records.series.points import Point
from hostler.trackers.base import Closing, Opened, Opening

DIR = "TRACKIO_DIR"
OWN = "hostler."  # before the names of facts that are no parameters
ID, STATE, TAGS, ENDED = f"{OWN}id", f"{OWN}state", f"{OWN}tags", f"{OWN}ended"
_REFUSED = re.compile(r"[^\w-]")  # in a project's name: trackio leaves them out, and two names become one
_RESERVED = {
    "project",
    "run",
    "timestamp",
    "step",
    "time",
    "metrics",
}  # trackio's own `log` renames them, too


class Trackio:
    def __init__(self) -> None:
        self._last: tuple[dict[str, float], int, str, str] | None = None

    def open(self, opening: Opening) -> Opened:
        self._id, self._name = opening.id, opening.name
        given = opening.options.get("dir")
        self._files = None if given else Path(opening.folder, "files")
        place = Path(given or Path(opening.folder, "work"))
        place.mkdir(parents=True, exist_ok=True)
        self._storage = storage(place)
        self._project = self._called(opening)
        self._config = {
            **{_key(name): value for name, value in opening.config.items()},
            "_Group": opening.sweep,
            "_Created": _moment(opening.started),
            ID: opening.id,
            TAGS: list(opening.tags),
            **({f"{OWN}notes": opening.notes} if opening.notes else {}),
        }
        self._storage.delete_run(self._project, self._name, run_id=self._id)
        return Opened(url=given or "")

    def log(self, points: Sequence[Point]) -> None:
        rows = [self._row(point) for point in points]
        if rows:
            self._write(rows, self._config if self._last is None else None)
            self._last = rows[-1]

    def flush(self) -> None:
        """Every row is seen at once."""

    def close(self, closing: Closing) -> None:
        config = {**self._config, **{_key(name): value for name, value in closing.config.items()}}
        config[TAGS] = list(dict.fromkeys([*config[TAGS], *closing.tags]))
        config |= {f"{OWN}result.{name}": value for name, value in closing.summary.items()}
        if closing.state:
            config |= {STATE: closing.state, ENDED: closing.ended}
        # A config is only taken along with a row: the last one, which is there already and stays as it is.
        self._write([self._last or self._row(Point(0, closing.ended, {}))], config)
        if self._files is not None:
            self._files.mkdir(parents=True, exist_ok=True)
            _copy(Path(self._storage.get_project_db_path(self._project)), self._files)

    def _row(self, point: Point) -> tuple[dict[str, float], int, str, str]:
        values = {_metric(name): value for name, value in point.values.items()}
        text = json.dumps([self._id, point.step, point.time, sorted(values)])
        return values, point.step, _moment(point.time), hashlib.sha256(text.encode()).hexdigest()[:32]

    def _write(self, rows: Sequence[tuple[dict[str, float], int, str, str]], config: Any) -> None:
        values, steps, times, ids = map(list, zip(*rows, strict=True))
        self._storage.bulk_log(
            self._project,
            self._name,
            values,
            steps=steps,
            timestamps=times,
            config=config,
            log_ids=ids,
            run_id=self._id,
        )

    def _called(self, opening: Opening) -> str:
        """The project's name; one that nobody wrote for trackio is made such that it takes it."""
        if project := opening.options.get("project"):
            self._storage.validate_project_name(project)
            return project
        name = _REFUSED.sub("-", opening.project)
        try:
            self._storage.validate_project_name(name)
        except ValueError:  # a word that it begins or ends with is reserved
            return f"project-{name}-runs"
        return name


def storage(place: Path) -> Any:
    """trackio's storage, in this folder; trackio itself reads the variable once, when it is imported."""
    env.adopt({DIR: str(place)})
    from trackio import sqlite_storage

    sqlite_storage.TRACKIO_DIR = place
    return sqlite_storage.SQLiteStorage


def _copy(database: Path, folder: Path) -> None:
    """The database as one whole file: what is written to it last lies beside it."""
    arriving = folder / f".{database.name}"
    arriving.unlink(missing_ok=True)
    with closed(sqlite3.connect(database)) as source, closed(sqlite3.connect(arriving)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
    os.replace(arriving, folder / database.name)


def _key(name: str) -> str:
    """The name of a parameter; those that begin with a line are trackio's own."""
    return f"param{name}" if name.startswith("_") else name


def _metric(name: str) -> str:
    return f"__{name}" if name in _RESERVED or name.startswith("__") else name


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
