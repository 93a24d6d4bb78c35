"""`hostler best`: the best run of a sweep, its parameters, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from hostler.cli import here
from hostler.cli.terminal import output
from hostler.errors import MissingError, UsageError
from hostler.records.rows import Row, rows
from hostler.records.run import resolve
from hostler.records.sweep import summary, sweeps
from hostler.records.sweep.metric_advice import advice
from hostler.spec.job import Job, Objective
from hostler.spec.nearest import did_you_mean
from hostler.spec.params import flatten
from hostler.spec.scalars import text
from hostler.spec.states import DONE, PRUNED
from hostler.store import Store


def command(
    sweep: str,
    metric: str | None,
    goal: str | None,
    top: int,
    key: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Show the best finished run of a sweep by its metric: parameters, value, how to get it."""
    store = here.open_here(store_url)
    name = resolve.sweep(store, sweep)
    job = sweeps.load(store, name)
    found = rows(store, [name], touched=True, say=output.saying())
    by = _objective(store, job, found, metric, goal)
    ranked = summary.ranked(job, found, by)
    if not ranked:
        raise MissingError(*_none(store, job, found, by))
    chosen = [(of, *one) for of, group in _groups(ranked, key) for one in group[:top]]
    if as_json:
        output.print_json([_json(by, value, row) for _, value, row in chosen])
        return 0
    for of, value, row in chosen:
        click.echo(f"{row.name}  {by.name}={output.number(value)}" + (f"  ({key} {of})" if key else ""))
        click.echo(f"  {output.params_line(row.params, limit=1000)}")
        click.echo(f"  hostler pull {row.copy_of or row.name}", err=True)
    return 0


def _groups(
    ranked: Sequence[tuple[float, Row]], key: str | None
) -> Iterator[tuple[str, Sequence[tuple[float, Row]]]]:
    """All of them, or each section or value and those of it, in the order of its first run."""
    if key is None:
        yield "", ranked
        return
    _check([row for _, row in ranked], key)
    groups: dict[str, list[tuple[float, Row]]] = {}
    for value, row in ranked:
        groups.setdefault(_group(row, key), []).append((value, row))
    yield from sorted(groups.items(), key=lambda one: min(row.index for _, row in one[1]))


def _check(found: Sequence[Row], key: str) -> None:
    """Some run has it: those of other sub-grids may not."""
    there = dict.fromkeys(name for row in found for name in flatten(row.params))
    if key not in there and not (key == "section" and any(row.section for row in found)):
        hint = did_you_mean(key, there, f"known: {', '.join(there)}")
        raise UsageError(f"{found[0].sweep} has no parameter {key!r} and no sections", hint=hint)


def _group(row: Row, key: str) -> str:
    if key == "section" and row.section:
        return str(row.section)
    params = flatten(row.params)
    return text(params[key]) if key in params else "none"


def _objective(
    store: Store, job: Job, found: Sequence[Row], metric: str | None, goal: str | None
) -> Objective:
    known = {one.name: one for one in job.objectives}
    name = metric or job.metric
    if name is None:
        raise UsageError(f"{job.name} has no metric to go by", hint=advice(store, job, found))
    return Objective(name, goal or (known[name].goal if name in known else job.goal))


def _none(store: Store, job: Job, found: Sequence[Row], by: Objective) -> tuple[str, str]:
    ended = [row for row in found if row.state in (DONE, PRUNED)]
    if not ended:
        return f"no run of {job.name} has finished yet", f"hostler status {job.name}"
    there = summary.logged(ended)
    if by.name in there:
        count = sum(by.name in row.metrics for row in ended)
        return (
            f"{by.name} is NaN or infinite in all {count} finished runs of {job.name} that have logged it",
            f"hostler status {job.name}",
        )
    return (
        f"no finished run of {job.name} has logged {by.name}",
        f"logged: {', '.join(there)}; --metric {there[0]}" if there else advice(store, job, found),
    )


def _json(by: Objective, value: float, row: Row) -> dict[str, object]:
    return {
        "run": row.id,
        "name": row.name,
        "metric": by.name,
        "goal": by.goal,
        "value": value,
        "params": dict(row.params),
        "section": row.section or None,
        "pull": ["hostler", "pull", row.copy_of or row.name],
    }
