"""Frames as files: CSV without curves or with them as JSON, Parquet with whole curves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hostler.analysis.tables import is_time, pandas_frame
from hostler.errors import MachineError

Columns = dict[str, Any]


def csv(columns: Columns, path: Path | None) -> str:
    """Written to the path, or returned as text."""
    shown = {name: _cells(column) for name, column in columns.items()}
    text: str | None = pandas_frame(shown).to_csv(path, index=False)
    return text or ""


def parquet(columns: Columns, path: Path) -> None:
    """A column whose values are of several kinds becomes text: Parquet has one kind for each."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MachineError(
            "Parquet needs the package pyarrow", hint="pip install 'hostler[analysis]', or --csv"
        ) from None
    made = {name: _arrow(pyarrow, column) for name, column in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(made), path)


def _arrow(pyarrow: Any, column: Any) -> Any:
    if is_time(column):
        return pyarrow.array(column, type=pyarrow.timestamp("us", tz="UTC"))
    if hasattr(column, "dtype") and column.dtype != object:
        return pyarrow.array(column)
    cells = [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in column]
    try:
        return pyarrow.array(cells)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if cell is None else _text(cell) for cell in cells])


def _cells(column: Any) -> Any:
    """As CSV can hold them: arrays, lists and tables as JSON."""
    if hasattr(column, "dtype") and column.dtype != object:
        return column
    return [
        _text(cell) if hasattr(cell, "tolist") or isinstance(cell, (list, dict)) else cell for cell in column
    ]


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell.tolist() if hasattr(cell, "tolist") else cell)
