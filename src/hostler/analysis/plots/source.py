"""Data of plots: the runs of some sweeps with their values, and their curves."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from hostler.analysis import curves as curve_reader
from hostler.analysis import frame as frame_reader
from hostler.analysis.chosen import Names, chosen
from hostler.analysis.frame import is_low_best
from hostler.analysis.plots.chart import is_drawable
from hostler.analysis.sheet import Sheet
from hostler.errors import HostlerError, MissingError, UsageError
from hostler.frozen import dataclass
from hostler.records.rows import Row
from hostler.records.sweep import sweeps
from hostler.spec import space
from hostler.spec.job import Job, Objective
from hostler.spec.nearest import did_you_mean
from hostler.spec.params import flatten
from hostler.spec.ranking import BEST, KEPT, LAST
from hostler.spec.scalars import text
from hostler.spec.states import DIVERGED, FAILED
from hostler.spec.units import show_number
from hostler.store import Store

SECTION, ROUND, SWEEP, STATE = "section", "round", "sweep", "state"  # besides parameters, what groups runs


@dataclass(frozen=True)
class PlotRun:
    """A run as a plot sees it; its row is judged by the plot's metric."""

    row: Row
    params: Mapping[str, Any]
    value: float = math.nan  # of the metric, as the run is ranked by it
    round: int = 1
    cost: float = math.nan

    @property
    def shown(self) -> str:
        """Its value, and which one that is, as `0.913 (best, step 40)`."""
        which = f" ({self.row.judged.shown})" if self.row.judged else ""
        return f"{show_number(self.value)}{which}"

    def at(self, key: str) -> Any:
        """Its value of a parameter, or what else runs are grouped by; None where it has none."""
        if key in self.params:
            return self.params[key]
        facts = {SECTION: self.row.section or None, ROUND: self.round, SWEEP: self.row.sweep}
        return {**facts, STATE: self.row.state}.get(key)


@dataclass(frozen=True)
class PlottedCurve:
    run: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class PlotSource:
    """Runs of a store and a metric to look at. `read` gets curves when a plot wants them."""

    runs: Sequence[PlotRun]
    metric: str
    goal: str
    title: str
    keys: tuple[str, ...] = ()  # parameters, in the order of the file
    scales: Mapping[str, bool] = field(default_factory=dict)  # of ranges in the file: is it logarithmic
    read: Callable[[Iterable[str], str], Sequence[PlottedCurve]] = field(default=lambda ids, x: ())

    @property
    def label(self) -> str:
        """The metric in a title, and which value of it where that is not the last; there may be none yet."""
        kinds = sorted({run.row.judged.of for run in self.valued if run.row.judged})
        which = f" ({' or '.join(kinds)})" if kinds and kinds != [LAST] else ""
        return f"{self.metric}{which}" if self.metric else "metric"

    @property
    def sign(self) -> int:
        """Times a value, more is better."""
        return -1 if self.goal == "min" else 1

    @cached_property
    def valued(self) -> list[PlotRun]:
        return [run for run in self.runs if is_drawable(run.value)]

    @cached_property
    def sound(self) -> list[PlotRun]:
        """Runs that may be the best: neither failed nor diverged, whatever they logged last."""
        return [run for run in self.valued if run.row.state not in (FAILED, DIVERGED)]

    @cached_property
    def ranked(self) -> list[PlotRun]:
        """The best first."""
        return sorted(self.sound, key=lambda run: (-self.sign * run.value, run.row.index))

    @property
    def why_none(self) -> str:
        """Why no run has a value to show, or one that may be the best."""
        logged = sum(self.metric in run.row.metrics for run in self.runs)
        if self.valued:
            return f"every run with a value of {self.metric} failed or diverged"
        if logged:
            return f"{self.metric} is NaN, infinite or too large in all {logged} runs that have logged it"
        return f"no run has logged {self.metric or 'a metric'} yet"

    @cached_property
    def varying(self) -> list[str]:
        return [key for key in self.keys if len({repr(run.at(key)) for run in self.runs}) > 1]

    def positions(
        self, runs: Sequence[PlotRun], key: str
    ) -> tuple[list[float], tuple[tuple[float, str], ...], bool]:
        """Position of each run on an axis of this key: (places, marks, whether the axis is logarithmic)."""
        places, marks = positions(runs, key)
        return places, marks, not marks and is_logarithmic(places, self.scales.get(key))

    def check(self, key: str) -> str:
        if key in self.keys or key in (SECTION, ROUND, SWEEP, STATE):
            return key
        known = [*self.keys, SECTION, ROUND, SWEEP, STATE]
        raise UsageError(
            f"no parameter named {key!r}", hint=did_you_mean(key, known, f"choose from: {', '.join(known)}")
        )


def source(
    store: Store,
    sweep: Names = None,
    *,
    metric: str | None = None,
    goal: str | None = None,
    best: bool = False,
    of: str | None = None,
) -> PlotSource:
    """The runs of these sweeps (of all, if none is named), ranked as their sweeps say, or by this rule;
    `best`: by each run's best value."""
    rows = chosen(store, sweep)
    names = list(dict.fromkeys(row.sweep for row in rows))
    jobs = {name: sweeps.load(store, name) for name in names}
    name = _metric(rows, metric)
    way, rule = goal or _goal(rows, name), BEST if best else of
    if name and (goal or rule or any(row.metric != name for row in rows)):
        own = next(
            (objective.of for job in jobs.values() for objective in job.looked_at if objective.name == name),
            KEPT,
        )
        rows = chosen(store, sweep, by=Objective(name, way, rule or own))
    known = _params(frame_reader.sheets(store, names))
    runs = [
        PlotRun(
            row,
            {**(values := flatten(row.params)), **_others(known.get(row.id, {}), values)},
            row.judged.value if row.judged else math.nan,
            jobs[row.sweep].round(row.index) or 1,
            _number(row.cost),
        )
        for row in rows
    ]
    keys = tuple(dict.fromkeys(key for run in runs for key in run.params))
    title = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    read = _reader(store, names, name, _logged(rows))
    return PlotSource(runs, name, way, title or store.url, keys, scales(jobs.values()), read)


def _metric(rows: Sequence[Row], asked: str | None) -> str:
    logged = _logged(rows)
    if asked is None:
        own = next((row.metric for row in rows if row.metric), None)
        return own or (logged[0] if logged else "")
    if logged and asked not in logged and not any(asked in row.metrics for row in rows):
        raise MissingError(
            f"no run has logged {asked!r}", hint=did_you_mean(asked, logged, f"logged: {', '.join(logged)}")
        )
    return asked


def _logged(rows: Sequence[Row]) -> list[str]:
    return sorted({name for row in rows for name in row.metrics if not name.startswith("system/")})


def _goal(rows: Sequence[Row], metric: str) -> str:
    row = next((row for row in rows if row.metric == metric), None)
    return "min" if is_low_best(metric, row.metric if row else None, row.goal if row else "max") else "max"


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _params(made: Iterable[Sheet]) -> dict[str, dict[str, Any]]:
    """run → its parameters as a frame has them: those it was given, chose, or had by default."""
    params: dict[str, dict[str, Any]] = {}
    for sheet in made:
        columns = {
            name: cells if isinstance(cells, list) else cells.tolist() for name, cells in sheet.params.items()
        }
        for n, run in enumerate(sheet.facts["run"]):
            params[run] = {name: cells[n] for name, cells in columns.items()}
    return params


def _others(known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values known of a run besides its parameters."""
    return {
        key: v
        for key, v in known.items()
        if key not in given and not (isinstance(v, float) and math.isnan(v))
    }


def _reader(
    store: Store, names: Sequence[str], metric: str, logged: Sequence[str]
) -> Callable[[Iterable[str], str], Sequence[PlottedCurve]]:
    def read(ids: Iterable[str], x: str) -> Sequence[PlottedCurve]:
        known = ["step", "time", *logged]
        if x not in known and not x.startswith("system/"):
            raise MissingError(
                f"no run has logged {x!r}", hint=did_you_mean(x, known, f"choose from: {', '.join(known)}")
            )
        if metric not in logged and not metric.startswith("system/"):
            return []  # and the plot says that no run has it
        wanted = [metric] if x in ("step", "time") else [metric, x]
        table = curve_reader.curves(store.url, names, run=list(ids), metric=wanted)
        curves = []
        for run, part in table.groupby("run", sort=False):
            own = part[part["metric"] == metric]
            xs = _xs(part, own, x)
            curves.append(PlottedCurve(str(run), xs, [float(v) for v in own["value"]]))
        return curves

    return read


def _xs(part: Any, own: Any, x: str) -> list[float]:
    """Positions of its points: by step, by seconds since the first, or by another metric's newest value."""
    if x == "step":
        return [float(v) for v in own["step"]]
    if x == "time":
        begun = float(part["time"].min()) if len(part) else 0.0
        return [float(v) - begun for v in own["time"]]
    other = part[part["metric"] == x].sort_values("step", kind="stable")
    steps, values = [float(s) for s in other["step"]], [float(v) for v in other["value"]]
    return [newest(steps, values, float(step)) for step in own["step"]]


def newest(steps: Sequence[float], values: Sequence[float], step: float) -> float:
    """The value at this step, or at the last one before it; NaN before the first."""
    at = bisect_right(steps, step) - 1
    return values[at] if at >= 0 else math.nan


def label(value: Any) -> str:
    return "none" if value is None else text(value)


def short(value: Any) -> str:
    """A value in a legend or a title."""
    return show_number(value) if isinstance(value, float) else label(value)


def groups(runs: Iterable[PlotRun], key: str) -> list[tuple[str, list[PlotRun]]]:
    """Runs by their value of a key: numbers in order, then texts; names are short where that tells apart."""
    runs = list(runs)
    alike = len({short(run.at(key)) for run in runs}) < len({label(run.at(key)) for run in runs})
    named = label if alike else short
    runses: dict[str, list[PlotRun]] = {}
    order: dict[str, tuple[int, float, str]] = {}
    for run in runs:
        value = run.at(key)
        name = named(value)
        runses.setdefault(name, []).append(run)
        order[name] = (0, float(value), name) if _is_number(value) else (2 if value is None else 1, 0.0, name)
    return [(name, runses[name]) for name in sorted(runses, key=order.__getitem__)]


def positions(runs: Sequence[PlotRun], key: str) -> tuple[list[float], tuple[tuple[float, str], ...]]:
    """Position of each run on an axis of this key, and marks of names. Numbers keep their values; if any
    value is not a number, all are named places in a row."""
    values = [run.at(key) for run in runs]
    if values and all(_is_number(v) for v in values):
        return [float(v) for v in values], ()
    found = groups(runs, key)
    place = {run.row.id: float(n) for n, (_, part) in enumerate(found) for run in part}
    marks = tuple((float(n), name) for n, (name, _) in enumerate(found))
    return [place[run.row.id] for run in runs], marks


def is_logarithmic(values: Sequence[float], given: bool | None) -> bool:
    """Whether their axis is: as the file has the range; of other values, where positive ones span a lot."""
    low, high = min(values), max(values)
    return low > 0 and (high / low > 50 if given is None else given)


def scales(jobs: Iterable[Job]) -> dict[str, bool]:
    """Parameters that files give a range, and whether it is logarithmic; the newest round's counts."""
    found: dict[str, bool] = {}
    for job in jobs:
        for one in [*(part.space for part in job.rounds), *_searched(job)]:
            found |= one.scales
    return found


def _searched(job: Job) -> list[space.Space]:
    """The space of a search, unless it cannot be read: then its values alone say how an axis is."""
    if not isinstance(job.search, Mapping) or not job.search:
        return []
    try:
        return [space.from_json(job.search)]
    except (HostlerError, KeyError, TypeError, ValueError):
        return []


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and is_drawable(value)
