"""Every point of every run, in long form, as it stands: what a lost attempt logged past its checkpoint is not
there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hostler.analysis import foreign
from hostler.analysis.chosen import Names, as_set, checked, present
from hostler.analysis.damage_report import Say, warn
from hostler.records.packs.packed_store import open_store
from hostler.records.rows import Row
from hostler.records.run.log import RunLog
from hostler.records.run.state import fold
from hostler.records.series import metrics, packing
from hostler.records.series.points import Point
from hostler.store import Store

if TYPE_CHECKING:
    import pandas

    from hostler.analysis.reading import SweepRead

COLUMNS = ["run", "metric", "step", "value", "time"]


def curves(
    url: str, sweep: Names = None, *, run: Names = None, metric: Names = None, say: Say = warn
) -> pandas.DataFrame:
    """Columns run, metric, step, value, time (seconds since 1970): run by run, curve by curve."""
    import numpy as np
    import pandas

    if tool := foreign.source(url):
        return _of_tool(*tool, as_set(sweep), as_set(run), as_set(metric), say)
    reads = list(present(open_store(url), sweep, say))
    logged = dict.fromkeys(name for reading in reads for name in reading.stack.metrics())
    wanted = None if metric is None else checked(metric, logged, "metric")
    runs = None if run is None else set(checked(run, _known(reads), "run"))
    parts: list[tuple[Any, ...]] = []
    before = 0
    ids: list[str] = []
    for one in reads:
        for name in one.stack.metrics():
            if wanted is None or name in wanted:
                counts, steps, times, values = one.stack.flat(name)
                places = np.repeat(np.arange(before, before + len(counts)), counts)
                parts.append((places, [name] * len(places), steps, values, times))
        ids += one.names(runs)
        before += len(one.stack)
    return _long(pandas, np, ids, parts)


def _known(found: Iterable[SweepRead]) -> dict[str, None]:
    """Known names of runs, then ids."""
    names = dict.fromkeys(name for reading in found for name in reading.display_names())
    return {**names, **dict.fromkeys(run for reading in found for run in reading.stack.runs())}


def _of_tool(
    kind: str, where: str, groups: set[str] | None, runs: set[str] | None, wanted: set[str] | None, say: Say
) -> pandas.DataFrame:
    import pandas

    pasts = foreign.chosen(list(foreign.past(kind, where, say)), groups)
    if runs is not None:
        checked(sorted(runs), dict.fromkeys(name for run in pasts for name in (run.name, run.id)), "run")
        pasts = [run for run in pasts if run.id in runs or run.name in runs]
    if wanted is not None:
        logged = (name for run in pasts for point in run.points for name in point.values)
        checked(sorted(wanted), dict.fromkeys(logged), "metric")
    rows = [
        (run.id, name, point.step, value, point.time)
        for run in pasts
        for point in run.points
        for name, value in point.values.items()
        if wanted is None or name in wanted
    ]
    long = pandas.DataFrame(rows, columns=COLUMNS)
    return long.sort_values(["run", "metric", "step"], kind="stable", ignore_index=True)


def _long(pandas: Any, np: Any, ids: list[str], parts: list[tuple[Any, ...]]) -> pandas.DataFrame:
    """Runs that are not wanted have no id."""
    none: tuple[Any, ...] = (np.empty(0, int), [], np.empty(0, int), np.empty(0), np.empty(0))
    places, names, steps, values, times = zip(*[none, *parts], strict=True)
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    known = np.fromiter((bool(one) for one in ids), dtype=bool, count=len(ids))
    order = order[known[place[order]]] if len(ids) else order
    metric = np.concatenate([np.array(part, dtype=object) for part in names])
    record = {
        "run": np.array(ids, dtype=object)[place[order]] if ids else np.empty(0, object),
        "metric": metric[order],
        "step": np.concatenate(steps)[order],
        "value": np.concatenate(values)[order],
        "time": np.concatenate(times)[order],
    }
    kinds = {"run": "object", "metric": "object", "step": "int64", "value": "float64", "time": "float64"}
    return pandas.DataFrame({name: pandas.Series(record[name], dtype=kinds[name]) for name in COLUMNS})


def points(store: Store, row: Row) -> Iterator[Point]:
    """The points of one run, oldest first."""
    if not row.attempt:
        return iter(())
    state = fold(RunLog(store, row.key).read_on().entries)
    if state.end and state.end.get("copy_of"):
        return iter(packing.points(store, row.id, state.end))
    return iter(metrics.read(store, row.id, state.attempt))
