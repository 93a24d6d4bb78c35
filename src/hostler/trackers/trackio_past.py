"""Reads runs from trackio's databases, without its library: a folder of them, or one file."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hostler.errors import DamagedError, MissingError
from hostler.records.series.points import Point
from hostler.trackers.past import Past, Say

_OWN = ("_", "hostler.")  # facts that are no parameters: trackio's, and those that hostler adds
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers
_ROWS = "SELECT run_id, run_name, step, timestamp, metrics FROM metrics ORDER BY timestamp, id"
_CONFIGS = "SELECT run_id, config FROM configs"


def read(where: str, say: Say) -> Iterator[Past]:
    """Runs of one database, or of all in a folder; files that are none are reported."""
    place = Path(where)
    files = sorted(place.rglob("*.db")) if place.is_dir() else [place]
    if not files or not files[0].is_file():
        raise MissingError(
            f"the trackio folder {where} does not exist, or holds no database",
            hint="give trackio:FOLDER or trackio:FILE.db",
        )
    for file in files:
        try:
            yield from _runs(file)
        except DamagedError as error:
            if file == place:
                raise
            say(error.message)


def _runs(file: Path) -> Iterator[Past]:
    try:
        address = f"file:{quote(str(file.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=30)) as database:
            configs = {run: _table(text) for run, text in database.execute(_CONFIGS)}
            rows = database.execute(_ROWS).fetchall()
    except sqlite3.Error as error:
        raise DamagedError(f"{file} is not a database of trackio's ({error})") from None
    points: dict[str, list[Point]] = {}
    names: dict[str, str] = {}
    for run, name, step, time, metrics in rows:
        names[run] = name
        found = points.setdefault(run, [])
        if values := _numbers(_table(metrics)):
            found.append(Point(step, _seconds(time) or 0.0, values))
    for run, name in names.items():
        yield _past(file.stem, run, name, configs.get(run, {}), points[run])


def _past(project: str, run: str, name: str, config: Mapping[str, Any], points: list[Point]) -> Past:
    ended = config.get("hostler.ended")
    tags = config.get("hostler.tags")
    return Past(
        id=run,
        name=name,
        group=str(config.get("_Group") or project),
        state=str(config.get("hostler.state") or ""),
        params={key: value for key, value in config.items() if not key.startswith(_OWN)},
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        started=_seconds(config.get("_Created")),
        ended=float(ended) if isinstance(ended, (int, float)) else None,
        points=points,
    )


def _table(text: Any) -> dict[str, Any]:
    """A table of JSON; anything else is none."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The values that make a curve; pictures, tables and texts are none."""
    found = {
        name: _WORDS.get(value, value) if isinstance(value, str) else value for name, value in metrics.items()
    }
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _seconds(moment: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return None
