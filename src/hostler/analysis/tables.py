"""Columns as a data frame: pandas, or polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hostler.errors import MachineError

if TYPE_CHECKING:
    import pandas


def pandas_frame(columns: dict[str, Any]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame(
        {
            name: pandas.Series(column).dt.tz_localize("UTC") if is_time(column) else column
            for name, column in columns.items()
        }
    )


def is_time(column: Any) -> bool:
    """Whether a column holds datetimes, which are in UTC."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "M"


def polars_frame(columns: dict[str, Any]) -> Any:
    """Values of several kinds in one column become text: polars has one kind for each."""
    try:
        import polars
    except ModuleNotFoundError:
        raise MachineError("a polars frame needs the package polars", hint="pip install polars") from None
    return polars.DataFrame([_series(polars, name, column) for name, column in columns.items()])


def _series(polars: Any, name: str, column: Any) -> Any:
    if is_time(column):
        return polars.Series(name, column).dt.replace_time_zone("UTC")
    if isinstance(column, np.ndarray) and column.dtype != object:
        return polars.Series(name, column)
    cells = [None if isinstance(cell, float) and cell != cell else cell for cell in column]
    try:
        return polars.Series(name, cells, strict=True)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        return polars.Series(name, [None if cell is None else str(cell) for cell in cells])
