"""`hostler best`: the best run of a sweep, its parameters, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from hostler.cli import here
from hostler.cli.options import ANY
from hostler.cli.terminal import output
from hostler.errors import MissingError, UsageError
from hostler.records.checkpoint import ranked_weights
from hostler.records.checkpoint.ranked_weights import RankedWeights
from hostler.records.rows import Row, SweepRuns, rows
from hostler.records.run import resolve, upstream
from hostler.records.sweep import summary
from hostler.records.sweep.metric_advice import advice
from hostler.spec.job import Job, Objective
from hostler.spec.nearest import did_you_mean
from hostler.spec.params import flatten
from hostler.spec.ranking import BEST, KEPT, LAST, averaged, judge
from hostler.spec.scalars import text
from hostler.spec.states import COUNTED, STOPPED
from hostler.spec.units import show_number
from hostler.store import Store


def command(
    sweep: str | None,
    metric: str | None,
    goal: str | None,
    of: str | None,
    top: int,
    key: str | None,
    only: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Show the best run of a sweep by its metric: parameters, value, how to get it."""
    store = here.open_here(store_url)
    meant = here.named_or_newest(store, (sweep,) if sweep else (), swept=True, or_before=True)
    job, _ = resolve.find(store, *meant)
    by, say = _objective(store, job, metric, goal, of), output.saying()
    states = (only,) if only not in (None, ANY) else None
    found = _leading(store, job, by, top, states, say) if key is None and by.of in (KEPT, LAST) else []
    ranked = summary.ranked(job, found, by)
    if not ranked:
        read = [row for row in _rows(store, job.name, say, by) if states is None or row.state in states]
        found = [_by_curve(store, row, by) for row in read]
        ranked = summary.ranked(job, found, by)
    if not ranked:
        raise MissingError(*_none(store, job, found, by))
    chosen = [(group, row) for group, members in _groups(ranked, key) for _, row in members[:top]]
    if as_json:
        output.print_json([_json(store, job, by, row) for _, row in chosen])
        return 0
    for group, row in chosen:
        mark = f"  {STOPPED}" * (row.state == STOPPED) + (f"  ({key} {group})" if key else "")
        click.echo(f"{row.name}  {_value(by, row)}{mark}")
        click.echo(f"  {output.params_line(row.params, limit=1000)}")
        if upstream.left_files(store, row):
            weights = _weights(store, by, row)
            click.echo(f"  hostler pull {_pulled(job, by, row, weights)}", err=True)
            if weights.missing:
                click.echo(f"  {weights.missing}", err=True)
    if line := output.nan_line(found, by.name):
        click.echo(f"  {line}", err=True)
    return 0


def _rows(store: Store, name: str, say: output.Say, by: Objective | None = None) -> list[Row]:
    return rows(store, [name], touched=True, by=by, say=say)


def _leading(
    store: Store, job: Job, by: Objective, top: int, states: tuple[str, ...] | None, say: output.Say
) -> list[Row]:
    """The rows that may be shown: of ended runs in segments the best, and those to be warned of."""
    runs = SweepRuns(store, job, by, say)
    table = runs.ended()
    found = runs.others(table)
    if table:
        chosen = {*table.leading(top, COUNTED if states is None else states), *table.odd(states)}
        found += [runs.ended_row(table, run) for run in chosen]
    rows = [row for row in found if not row.trashed and (states is None or row.state in states)]
    return sorted(rows, key=lambda row: row.index)


def _value(by: Objective, row: Row) -> str:
    """The value that it is ranked by, as `acc=0.913 (best, step 40)`."""
    assert row.judged is not None
    return f"{by.name}={show_number(row.judged.value)} ({row.judged.shown})"


def _weights(store: Store, by: Objective, row: Row) -> RankedWeights:
    assert row.judged is not None
    return ranked_weights.at_value(store, upstream.original(store, row.key), by.name, row.judged)


def _pulled(job: Job, by: Objective, row: Row, weights: RankedWeights) -> str:
    """The name to pull: with a step where the weights are those of another rule than the sweep's own."""
    elsewhere = weights.elsewhere if by != job.ranked_by else None
    return (row.copy_of or row.name) + (f"@{elsewhere.step}" if elsewhere else "")


def _by_curve(store: Store, row: Row, by: Objective) -> Row:
    """The run judged by its curve, where its end does not hold what the rule needs."""
    if row.judged is None or row.state not in COUNTED:
        return row
    lacks_mean = averaged(by.of) and row.judged.of == LAST
    if not lacks_mean and not (by.of == BEST and row.judged.step is None):
        return row
    from hostler.records.series import metrics, packing  # ends hold it, but for another rule than the sweep's

    points = [p for p in metrics.read(store, row.copy_of or row.id, packing.ANY) if by.name in p.values]
    facts: dict[str, Any] = {"metrics": metrics.summary(points)}
    if count := averaged(by.of):
        last = [point.values[by.name] for point in points[-count:]]
        facts["means"] = {by.name: {"of": count, "value": sum(last) / len(last)}} if last else {}
    return replace(row, judged=judge(facts, by) or row.judged)


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


def _objective(store: Store, job: Job, metric: str | None, goal: str | None, of: str | None) -> Objective:
    known = {objective.name: objective for objective in job.looked_at}
    name = metric or job.metric
    if name is None:
        raise UsageError(
            f"{job.name} has no metric to go by",
            hint=advice(store, job, _rows(store, job.name, output.saying())),
        )
    own = known.get(name) or Objective(name, job.goal, job.of)
    return Objective(name, goal or own.goal, of or own.of)


def _none(store: Store, job: Job, found: Sequence[Row], by: Objective) -> tuple[str, str]:
    ended = [row for row in found if row.state in COUNTED]
    if not ended:
        return summary.unfinished(summary.of_sweep(store, job.name))
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


def _json(store: Store, job: Job, by: Objective, row: Row) -> dict[str, object]:
    assert row.judged is not None
    weights = _weights(store, by, row) if upstream.left_files(store, row) else None
    return {
        "run": row.id,
        "name": row.name,
        "sweep": row.sweep,
        "metric": by.name,
        "goal": by.goal,
        **row.judged._asdict(),
        "state": row.state,
        "params": dict(row.params),
        "section": row.section or None,
        "pull": ["hostler", "pull", _pulled(job, by, row, weights)] if weights else None,
        "weights": weights.record if weights else None,
    }
