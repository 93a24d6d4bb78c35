"""Columns as a data frame: pandas, or polars."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hostler.errors import MachineError

if TYPE_CHECKING:
    import pandas


def pandas_frame(columns: dict[str, Any]) -> pandas.DataFrame:
    import pandas

    text = _text_of(pandas)
    frame = pandas.DataFrame(
        {
            n: pandas.Series(column).dt.tz_localize("UTC") if is_time(column) else _cells(column, text)
            for n, column in enumerate(columns.values())
        }
    )
    if columns:  # names would take pandas longer, as all lists of strings do
        frame.columns = pandas.Index(text([*columns]))
    return frame


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


# Lists as pandas keeps them: the same as pandas makes of them, which looks at each cell several times.


def _cells(column: Any, text: Callable[[list[str]], Any]) -> Any:
    if not isinstance(column, list) or not column:
        return column
    first = column[0]
    if type(first) is str:
        return text(column)
    if type(first) is float and first != first and column.count(first) == len(column):
        return np.full(len(column), first)  # the same object in every row: equal to nothing else
    return column


def _text_of(pandas: Any) -> Callable[[list[str]], Any]:
    """What makes an array of a list of strings; the list itself where pandas keeps them as objects."""
    dtype = _text_dtype(pandas)
    if dtype is None:
        return lambda cells: cells
    import pyarrow

    def array(cells: list[str]) -> Any:
        try:
            data, ends = _joined(cells)
        except TypeError:  # not all are strings
            return cells
        except UnicodeEncodeError:  # half of a character, which pandas would refuse as text
            return pandas.Series(cells, dtype=object)
        buffers = pyarrow.py_buffer(ends), pyarrow.py_buffer(data)
        return dtype.__from_arrow__(pyarrow.LargeStringArray.from_buffers(len(cells), *buffers))

    return array


def _text_dtype(pandas: Any) -> Any:
    """What pandas makes of strings, where it keeps them as pyarrow does."""
    try:
        with warnings.catch_warnings():  # who asks is told that one day nobody can
            warnings.simplefilter("ignore")
            dtype = pandas.StringDtype(na_value=np.nan) if pandas.options.future.infer_string else None
    except (AttributeError, TypeError):  # an older pandas
        return None
    return dtype if getattr(dtype, "storage", "") == "pyarrow" else None


def _joined(cells: list[str]) -> tuple[bytes, Any]:
    """The bytes of all strings, one after the other, and where each begins and ends."""
    count = len(cells)
    if cells.count(cells[0]) == count:
        data = cells[0].encode()
        return data * count, np.arange(count + 1, dtype=np.int64) * len(data)
    whole = "".join(cells)
    sizes = map(len, cells) if whole.isascii() else map(len, map(str.encode, cells))
    ends = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, count), out=ends[1:])
    return whole.encode(), ends
