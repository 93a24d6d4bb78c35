"""A folder that shows the runs of a sweep as files, kept up to date while they run.

DIR/2025-01-31-linear/003-base_lr=0.1/ has `config.yaml` (the parameters, and what the script chose itself),
`stats.csv` (a row for each step that metrics were logged at), `log.txt`, and `done` once the run is. It is a
view: nothing reads it back. A file that the run itself left under one of these names takes the place of ours.
"""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler.analysis import curves
from hostler.records.checkpoint import outputs
from hostler.records.checkpoint.restorer import row_of
from hostler.records.rows import Row, rows
from hostler.records.run.log import RunLog
from hostler.records.series.logs import LogReader
from hostler.records.sweep import sweeps
from hostler.spec.folders import folder
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.scalars import for_yaml
from hostler.spec.states import DONE, ENDED
from hostler.store import Store

RESULTS = "results"
CONFIG, STATS, LOG, MARK = "config.yaml", "stats.csv", "log.txt", "done"
_BETWEEN = "train/step_loss"  # of the trainer, between two rows of its table


class LiveFolder:
    def __init__(self, store: Store, job: Job, root: Path, say: Callable[[str], None] | None = None) -> None:
        self._store, self._job, self._root, self._say = store, job, root, say
        self._date = time.strftime("%Y-%m-%d", time.localtime(sweeps.submitted(store, job.name)))
        self._shown: dict[str, object] = {}  # run → what its files were made of
        self._logs: dict[str, LogReader] = {}

    @property
    def path(self) -> Path:
        """The sweep's own folder."""
        return self._root / f"{self._date}-{self._job.name}"

    def update(self) -> list[Row]:
        """Write what has changed since the last time; all runs of the sweep."""
        found = rows(self._store, [self._job.name], say=self._say)
        for row in (row for row in found if row.attempt):
            place = self._root / folder(self._job, row.index, "numbered", self._date)
            self._log(row, place)
            now = (row.state, row.attempt, row.step, tuple(row.metrics.items()))
            if self._shown.get(row.id) != now:
                self._write(row, place)
                self._shown[row.id] = now
        return found

    def _write(self, row: Row, place: Path) -> None:
        _put(place / CONFIG, _yaml({**flatten(row.params), **self._chosen(row)}))
        _put(place / STATS, self._table(row))
        if row.state in ENDED:
            self._own_files(row, place)
        if row.state == DONE:
            _put(place / MARK, "")
        else:
            (place / MARK).unlink(missing_ok=True)

    def _chosen(self, row: Row) -> dict[str, Any]:
        entries = RunLog(self._store, row.key).read_on().entries
        return next((dict(entry["config"]) for entry in reversed(entries) if entry.get("config")), {})

    def _table(self, row: Row) -> str:
        table: dict[int, dict[str, float]] = {}
        for point in curves.points(self._store, row):
            values = {k: v for k, v in point.values.items() if not k.startswith("system/")}
            if values and _BETWEEN not in values:
                table.setdefault(point.step, {"step": point.step, "timestamp": point.time}).update(values)
        columns = dict.fromkeys(name for line in table.values() for name in line)
        text = io.StringIO()
        writer = csv.DictWriter(text, ["", *columns], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({"": n, **table[step]} for n, step in enumerate(sorted(table)))
        return text.getvalue()

    def _own_files(self, row: Row, place: Path) -> None:
        """`config.yaml` and `stats.csv` as the run left them, where it left one of that name."""
        found = outputs.newest(self._store, row.copy_of or row.id)
        for name in (CONFIG, STATS):
            left = [
                record for record in (found[1] if found else ()) if Path(row_of(record).name).name == name
            ]
            if len(left) != 1:
                continue
            with tempfile.TemporaryDirectory(dir=place, prefix=".") as staging:
                outputs.fetch(self._store, row.copy_of or row.id, left, Path(staging) / "left")
                os.replace(Path(staging) / "left" / row_of(left[0]).name, place / name)

    def _log(self, row: Row, place: Path) -> None:
        """New lines are added; whoever follows the file sees them."""
        new = row.id not in self._logs
        if new:
            self._make(place)
        reader = self._logs.setdefault(row.id, LogReader(self._store, row.copy_of or row.id))
        with open(place / LOG, "wb" if new else "ab") as file:
            for piece in reader.read():
                file.write(piece.data)

    def _make(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        ignored = place.parent / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n")  # no part of the next run's code


def _yaml(params: dict[str, Any]) -> str:
    lines = (f"{json.dumps(k)}: {for_yaml(json.dumps(v, default=str))}\n" for k, v in params.items())
    return "".join(lines)


def _put(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    os.replace(part, path)
