"""The columns of a frame, sweep by sweep, before pandas or polars sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hostler.analysis.names import FACTS, best_of, is_low_best
from hostler.analysis.reading import SweepRead
from hostler.records.rows import display_names
from hostler.records.series.segments import PARTS, STEPS
from hostler.spec.job import Job
from hostler.spec.ranking import BEST, LAST, judge

Columns = dict[str, Any]  # a numpy array, or a list
LATEST = 9.2e9  # seconds since 1970 that every kind of datetime can hold


@dataclass
class Sheet:
    """Facts, parameters and metrics of the runs of one sweep, by their own names."""

    count: int
    facts: Columns
    params: Columns
    totals: Mapping[str, tuple[Any, Any]]  # metric → last, best
    curve: Callable[[str, str], Any] = field(repr=False)


def sheet(one: SweepRead, fill: Callable[[Job, Sheet], None]) -> Sheet:
    """`fill` adds to the parameters what is known besides."""
    stack, job = one.stack, one.job
    totals = {name: (stack.total(name, "last"), _best(stack, job, name)) for name in stack.metrics()}
    params = {name: stack.column("params", name) for name in stack.names("params")}
    made = Sheet(len(stack), _facts(one), params, totals, stack.curve)
    if "config" in stack.names("end"):
        _fill_own(made, stack.column("end", "config"))
    fill(job, made)
    return made


def join(
    sheets: Sequence[Sheet],
    *,
    curves: bool,
    metrics: set[str] | None = None,
    hidden: Collection[str] = (),
) -> Columns:
    """Join all into one table: facts, parameters, metrics but the hidden ones, and their curves."""
    taken = set(FACTS)
    logged = dict.fromkeys(name for one in sheets for name in one.totals)
    shown = _columns_of_metrics([name for name in logged if name not in hidden], taken)
    columns: Columns = {name: _joined([one.facts[name] for one in sheets]) for name in FACTS}
    for name in dict.fromkeys(name for one in sheets for name in one.params):
        column = _free(name, "param.", lambda column: (column,), taken)
        columns[column] = _joined([one.params.get(name, _none(one.count)) for one in sheets])
    for name, column in shown.items():
        none = [(np.full(one.count, np.nan),) * 2 for one in sheets]
        pairs = [one.totals.get(name, nan) for one, nan in zip(sheets, none, strict=True)]
        for at, where in enumerate(_of_metric(column)[:2]):
            columns[where] = np.concatenate([pair[at] for pair in pairs])
    if curves:
        for name, column in shown.items():
            if metrics is None or name in metrics:
                for what, where in zip(("steps", "values"), _of_metric(column)[2:], strict=True):
                    columns[where] = np.concatenate([one.curve(name, what) for one in sheets])
    return columns


def _columns_of_metrics(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """The column of each: its name, or a longer one where that is another's (`acc.best` beside `acc`)."""
    found = {name: _free(name, "metric.", _of_metric, taken) for name in sorted(names, key=len)}
    return {name: found[name] for name in names}


def _free(name: str, prefix: str, columns: Callable[[str], Sequence[str]], taken: set[str]) -> str:
    while taken.intersection(columns(name)):
        name = prefix + name
    taken.update(columns(name))
    return name


def moments(seconds: Any) -> Any:
    """Seconds since 1970 as an array of datetimes in UTC; NaT for what is not a time."""
    plain = isinstance(seconds, np.ndarray) and seconds.dtype.kind in "fiu"
    given = np.asarray(seconds if plain else [_second(cell) for cell in seconds], dtype=np.float64)
    sound = np.abs(given) < LATEST
    made = np.full(len(given), "NaT", dtype="datetime64[us]")
    made[sound] = np.round(given[sound] * 1e6).astype(np.int64).astype("datetime64[us]")
    return made


def _second(cell: Any) -> float:
    return float(cell) if isinstance(cell, (int, float)) and abs(cell) < LATEST else math.nan


def take(columns: Columns, rows: Sequence[int]) -> Columns:
    """Take these rows of a table."""
    at = np.asarray(rows, dtype=np.int64)
    return {
        name: column[at] if isinstance(column, np.ndarray) else [column[n] for n in rows]
        for name, column in columns.items()
    }


def _of_metric(column: str) -> tuple[str, str, str, str]:
    return column, best_of(column), f"{column}.steps", f"{column}.curve"


def _facts(one: SweepRead) -> Columns:
    stack, job, count = one.stack, one.job, len(one.stack)
    runs = stack.runs()
    indices = [int(run[:7]) for run in runs]

    def end(name: str) -> Any:
        return stack.column("end", name)

    shared = one.tags.get("", ())
    common = ",".join(dict.fromkeys(shared))
    own = {run: ",".join(dict.fromkeys([*shared, *tags])) for run, tags in one.tags.items() if run}
    return {
        "run": runs,
        "name": display_names(job, indices),
        "sweep": [job.name] * count,
        "index": np.asarray(indices, dtype=np.int64),
        "round": _by_round(job, indices),
        "section": _by_section(job, indices),
        "state": end("state"),
        "attempts": _counted(end("attempts")),
        "host": end("host"),
        "code": end("code"),
        "started": end("started"),
        "ended": end("at"),
        "seconds": _first(end("total"), end("seconds")),
        "cost": end("cost"),
        "step": end("step"),
        "tags": [own.get(run, common) for run in runs] if own else [common] * count,
        "failure": _messages(end("failure")) if "failure" in stack.names("end") else _none(count),
        "reason": end("why"),
        **_ranked(one),
    }


def _ranked(one: SweepRead) -> Columns:
    """The value that each run is ranked by, which one that is, and at which step: as `judge` says of its end.
    Runs whose end notes neither kept states nor means are many, and are not asked one by one."""
    stack, by = one.stack, one.job.ranked_by
    if by is None:
        return {name: _none(len(stack)) for name in ("ranked", "ranked_of", "ranked_step")}
    totals = {part: stack.total(by.name, part) for part in (*PARTS, *STEPS)}
    value, step = (
        (totals[by.goal], totals[f"{by.goal}_step"]) if by.of == BEST else (totals["last"], totals["step"])
    )
    value, step = value.copy(), step.copy()
    kinds = [BEST if by.of == BEST else LAST] * len(stack)
    noted = {name: stack.column("end", name) for name in ("kept", "means") if name in stack.names("end")}
    for n in range(len(stack)) if noted else ():
        facts: dict[str, Any] = {k: cells[n] for k, cells in noted.items() if isinstance(cells[n], dict)}
        if facts and not math.isnan(step[n]):
            total = {part: float(cells[n]) for part, cells in totals.items()}
            if judged := judge({"metrics": {by.name: total}, **facts}, by):
                value[n], kinds[n] = judged.value, judged.of
                step[n] = math.nan if judged.step is None else judged.step
    logged = ~np.isnan(totals["step"])
    of = [kind if there else math.nan for kind, there in zip(kinds, logged.tolist(), strict=True)]
    return {"ranked": value, "ranked_of": of, "ranked_step": step}


def _by_round(job: Job, indices: Sequence[int]) -> Any:
    if len(job.rounds) < 2:
        return np.full(len(indices), len(job.rounds), dtype=np.int64)
    return np.asarray([job.round(index) for index in indices], dtype=np.int64)


def _by_section(job: Job, indices: Sequence[int]) -> Any:
    sectioned = {job.round(n) for n in _first_of_rounds(job) if job.section(n)}
    cells = [job.section(n) if sectioned and job.round(n) in sectioned else 0 for n in indices]
    return np.asarray(cells, dtype=np.int64)


def _first_of_rounds(job: Job) -> list[int]:
    firsts, at = [], 0
    for one in job.rounds:
        firsts += [at] if one.count else []
        at += one.count
    return firsts


def _best(stack: Any, job: Job, name: str) -> Any:
    goal = {objective.name: objective.goal for objective in job.looked_at}.get(name)
    low = goal == "min" if goal else is_low_best(name, None, "")
    return stack.total(name, "min" if low else "max")


def _fill_own(made: Sheet, configs: Sequence[Any]) -> None:
    """Parameters that a script chose itself, as its run wrote them down; also in place of a null."""
    for n, config in enumerate(configs):
        for name, value in config.items() if isinstance(config, dict) else ():
            column = made.params.get(name)
            if isinstance(column, list) and column[n] is None:
                column[n] = value
            put(made, n, name, value)


def put(made: Sheet, row: int, name: str, value: Any) -> None:
    """A parameter's value, where the run has none."""
    column = made.params.setdefault(name, _none(made.count))
    if isinstance(column, list) and isinstance(column[row], float) and math.isnan(column[row]):
        column[row] = value  # an array of numbers has one for every run


def _counted(cells: Any) -> Any:
    if isinstance(cells, np.ndarray) or set(map(type, cells)) == {int}:
        return cells
    return [0 if _is_nan(cell) else cell for cell in cells]


def _first(one: Any, other: Any) -> Any:
    if isinstance(one, np.ndarray) or (set(map(type, one)) == {float} and not math.isnan(sum(one))):
        return one
    return [b if _is_nan(a) else a for a, b in zip(one, other, strict=True)]


def _messages(failures: Sequence[Any]) -> list[Any]:
    return [failure.get("message") if isinstance(failure, dict) else math.nan for failure in failures]


def _is_nan(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _none(count: int) -> list[Any]:
    return [math.nan] * count


def _joined(columns: Sequence[Any]) -> Any:
    if len(columns) == 1:
        return columns[0]
    if (
        columns
        and len({getattr(column, "dtype", None) for column in columns} - {None}) == 1
        and all(isinstance(column, np.ndarray) for column in columns)
    ):
        return np.concatenate(columns)
    return [
        cell for column in columns for cell in (column.tolist() if isinstance(column, np.ndarray) else column)
    ]
