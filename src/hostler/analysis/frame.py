"""All runs of a store, one row each: their parameters, states and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hostler.analysis import filters, sheet
from hostler.analysis.chosen import Names, as_set, checked, present
from hostler.analysis.damage_report import Say, warn
from hostler.analysis.names import FACTS, SYSTEM, TIMES, best_of, is_low_best
from hostler.analysis.sheet import Sheet, put
from hostler.errors import DamagedError, NewerFormatError
from hostler.records import defaults
from hostler.records.packs.packed_store import open_store
from hostler.spec.job import Job
from hostler.spec.states import ALL
from hostler.store import Store

if TYPE_CHECKING:
    import pandas

__all__ = ["FACTS", "best_of", "columns", "columns_of", "frame", "is_low_best"]


def frame(
    url: str | Sequence[str],
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    system: bool = False,
    polars: bool = False,
    say: Say = warn,
) -> pandas.DataFrame:
    """Columns: facts, then each parameter, then of each metric `<metric>` (the last value) and
    `<metric>.best`, and its curve as arrays: `<metric>.steps` and `<metric>.curve`.

    The best is the largest, or the smallest where the sweep's goal for that metric is `min` or where the
    metric is called a loss or an error. A metric that has the name of a fact, or of what belongs to another
    metric, is `metric.<name>`, a parameter that has the name of another column `param.<name>`. `where` holds
    a condition for each of some columns (see `filters.py`); `curves` False: none; names: of these metrics.
    `system`: also the metrics of the machine, `system/cpu` and others. Times are datetimes, in UTC. What
    cannot be read is said.

    `url` is a store's, or a tracking tool's (`wandb:FOLDER`, see `foreign.py`); several become one frame."""
    from hostler.analysis.tables import pandas_frame, polars_frame

    record = columns_of(url, sweep, state=state, where=where, curves=curves, system=system, say=say)
    return polars_frame(record) if polars else pandas_frame(record)


def columns(
    store: Store,
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    system: bool = False,
    say: Say = warn,
) -> dict[str, Any]:
    """The same as a dict of columns: numpy arrays and lists."""
    return _joined(sheets(store, sweep, say), state, where, curves, system)


def columns_of(
    urls: str | Sequence[str],
    sweep: Names = None,
    *,
    state: str | Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    curves: bool | Iterable[str] = True,
    system: bool = False,
    say: Say = warn,
) -> dict[str, Any]:
    """The same of stores and tracking tools, by their addresses."""
    from hostler.analysis import foreign

    found: list[Sheet] = []
    for url in [urls] if isinstance(urls, str) else urls:
        tool = foreign.source(url)
        found += [foreign.read(*tool, as_set(sweep), say)] if tool else sheets(open_store(url), sweep, say)
    return _joined(found, state, where, curves, system)


def _joined(
    made: Sequence[Sheet],
    state: str | Iterable[str] | None,
    where: Mapping[str, Any] | None,
    curves: bool | Iterable[str],
    system: bool,
) -> dict[str, Any]:
    states = None if state is None else checked(state, ALL, "state")
    logged = dict.fromkeys(name for one in made for name in one.totals)
    only = None if isinstance(curves, bool) else set(checked(curves, logged, "metric"))
    conditions = {**({"state": states} if states is not None else {}), **(where or {})}
    asked = {*(only or ()), *conditions, *(name.removesuffix(".best") for name in conditions)}
    hidden = set() if system else {name for name in logged if name.startswith(SYSTEM)} - asked
    record = sheet.join(made, curves=bool(curves), metrics=only, hidden=hidden)
    record |= {name: sheet.moments(record[name]) for name in TIMES}
    if not conditions:
        return record
    return sheet.take(record, filters.keep(record, conditions, len(record["run"])))


def sheets(store: Store, sweep: Names = None, say: Say = warn) -> list[Sheet]:
    """The columns of each selected sweep, with default values filled in."""
    fill = filler(store, say)
    return [sheet.sheet(reading, fill) for reading in present(store, sweep, say)]


# Values that were defaults when a run was made, from the project's ledger (`records/defaults.py`).


def filler(store: Store, say: Say) -> Callable[[Job, Sheet], None]:
    """Fills in, for each run, the parameters it was not given: as the defaults were when it started."""
    known: defaults.History = ()
    try:
        known = defaults.history(store)
    except (DamagedError, NewerFormatError) as error:
        say(f"defaults could not be filled in: {error}")

    def fill(job: Job, made: Sheet) -> None:
        if not known:
            return
        for row, (index, started) in enumerate(zip(made.facts["index"], made.facts["started"], strict=True)):
            if started == started and started is not None:
                values = defaults.at(known, job.command_of(int(index)), float(started))
                for name, value in values.items():
                    put(made, row, name, value)

    return fill
