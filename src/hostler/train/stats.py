"""The table of a training: a row per epoch, in `stats.csv`; kept in checkpoints, so that a resumed run
has all of it."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TIMESTAMP = "timestamp"


class Stats:
    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is written: of several ranks one writes."""
        self._path = path
        self.rows: list[dict[str, float]] = []

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
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        temporary.write_text(text.getvalue())
        os.replace(temporary, self._path)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": [dict(row) for row in self.rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rows = [dict(row) for row in state["rows"]]
        self.write()
