"""All runs of a store, one row each: what they were given, how they are, what came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hostler.analysis.chosen import Names, as_set, present
from hostler.analysis.names import FACTS, best_of, is_low_best
from hostler.analysis.said import Say, warn
from hostler.store import Store, open_store

if TYPE_CHECKING:
    import pandas

    from hostler.analysis.sheet import Sheet

__all__ = ["FACTS", "best_of", "columns", "columns_of", "frame", "is_low_best"]


def frame(
    url: str | Sequence[str],
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    polars: bool = False,
    say: Say = warn,
) -> pandas.DataFrame:
    """Columns: facts, then each parameter, then of each metric `<metric>` (the last value) and
    `<metric>.best`, and its curve as arrays: `<metric>.steps` and `<metric>.curve`.

    The best is the largest, or the smallest where the sweep's goal for that metric is `min` or where the
    metric is called a loss or an error. A metric that has the name of a fact is `metric.<name>`, a parameter
    that has the name of another column `param.<name>`. `where` holds a condition for each of some columns
    (see `filters.py`); `curves` False: none; names: of these metrics. What cannot be read is said.

    `url` is a store's, or a tracking tool's (`wandb:FOLDER`, see `foreign.py`); several become one frame."""
    from hostler.analysis.tables import pandas_frame, polars_frame

    found = columns_of(url, sweep, state=state, where=where, curves=curves, say=say)
    return polars_frame(found) if polars else pandas_frame(found)


def columns(
    store: Store,
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    say: Say = warn,
) -> dict[str, Any]:
    """The same as a dict of columns: numpy arrays and lists."""
    return _joined(_sheets(store, sweep, say), state, where, curves)


def columns_of(
    urls: str | Sequence[str],
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    say: Say = warn,
) -> dict[str, Any]:
    """The same of stores and tracking tools, by their addresses."""
    from hostler.analysis import foreign

    sheets: list[Sheet] = []
    for url in as_list(urls):
        tool = foreign.source(url)
        sheets += [foreign.read(*tool, as_set(sweep))] if tool else _sheets(open_store(url), sweep, say)
    return _joined(sheets, state, where, curves)


def _sheets(store: Store, sweep: Names, say: Say) -> list[Sheet]:
    from hostler.analysis import ledger, sheet

    fill = ledger.filler(store, say)
    return [sheet.sheet(one, fill) for one in present(store, sweep, say)]


def _joined(
    sheets: Sequence[Sheet],
    state: str | Iterable[str] | None,
    where: Mapping[str, Any] | None,
    curves: bool | Iterable[str],
) -> dict[str, Any]:
    from hostler.analysis import filters, sheet

    only = None if isinstance(curves, bool) else as_set(curves)
    found = sheet.join(sheets, curves=bool(curves), metrics=only)
    conditions = {**({"state": as_list(state)} if state is not None else {}), **(where or {})}
    if not conditions:
        return found
    return sheet.take(found, filters.keep(found, conditions, len(found["run"])))


def as_list(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
