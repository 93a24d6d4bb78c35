"""The table of a training: a row per epoch, in `stats.csv`; kept in checkpoints, so that a resumed run
has all of it."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.sdk.checkpoint.writer import Writer

TIMESTAMP = "timestamp"


class Stats:
    def __init__(self, path: Path | None, *, beside: bool = False) -> None:
        """Without a path nothing is written: of several ranks one writes. `beside`: by a thread, so that no
        step waits for a disk, until `wait`."""
        self._path = path
        self.rows: list[dict[str, float]] = []
        self._writer = Writer(self._tried) if beside else None
        self._error: OSError | None = None

    def add(self, row: Mapping[str, float]) -> None:
        self.rows.append(dict(row))
        self.write()

    def write(self) -> None:
        """The whole file anew, whole or not at all; columns in the order they first came."""
        if self._path is None:
            return
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        if self._writer is None:
            self._put(text.getvalue())
            return
        self._check()
        self._writer.give(text.getvalue())

    def wait(self) -> None:
        """Until all rows are in the file; an OSError of its writing is raised here, or by the next row."""
        if self._writer is not None:
            self._writer.wait()
            self._check()

    def _check(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _tried(self, text: str) -> None:
        try:
            self._put(text)
        except OSError as error:
            self._error = error

    def _put(self, text: str) -> None:
        assert self._path is not None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        temporary.write_text(text)
        os.replace(temporary, self._path)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": [dict(row) for row in self.rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rows = [dict(row) for row in state["rows"]]
        self.write()
