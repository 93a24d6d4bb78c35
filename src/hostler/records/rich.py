"""Runs and sweeps as Jupyter shows them: small tables, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from hostler.records.rows import Row
from hostler.records.sweep.summary import Summary
from hostler.spec.params import flatten
from hostler.spec.scalars import text
from hostler.spec.units import show_duration, show_number

ROWS = 10


def of_sweep(short: Summary, best: Sequence[Row]) -> str:
    """A sweep in a few lines: how many runs are in which state, and the best of them."""
    counts = short.states or "no runs"
    head = f"<p><strong>{escape(short.name)}</strong> {escape(counts)}"
    head += f"; about {show_duration(short.eta)} left" if short.eta else ""
    head += f"<br><em>halted: {escape(short.halted)}</em>" if short.halted else ""
    return head + "</p>" + (of_rows(best) if best else "")


def of_rows(rows: Sequence[Row]) -> str:
    """Runs as a table: state, metrics, parameters that differ."""
    shown = rows[:ROWS]
    metrics = dict.fromkeys(name for r in shown for name in r.metrics if not name.startswith("system/"))
    params = dict.fromkeys(name for r in shown for name in flatten(r.params))
    head = ["run", "state", *metrics, *params]
    lines = [
        [
            r.name,
            r.state,
            *(_cell(r.metrics.get(m)) for m in metrics),
            *(_cell(flatten(r.params).get(p)) for p in params),
        ]
        for r in shown
    ]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    body = "".join(_line(line) for line in lines)
    return f"<table><thead>{_line(head, 'th')}</thead><tbody>{body}</tbody></table>{more}"


def of_run(row: Row) -> str:
    """A run as a table, a line for each fact."""
    facts: list[tuple[str, Any]] = [("state", row.state), ("host", row.host), ("step", row.step)]
    facts += [("time", show_duration(row.seconds))] if row.seconds else []
    facts += [("error", row.failure.get("message"))] if row.failure else []
    facts += [*row.metrics.items(), *flatten(row.params).items()]
    return of_facts(row.name, facts)


def of_facts(title: str, facts: Iterable[tuple[str, Any]]) -> str:
    lines = "".join(_line([name, _cell(value)]) for name, value in facts if value is not None)
    return f"<p><strong>{escape(title)}</strong></p><table><tbody>{lines}</tbody></table>"


def _line(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return show_number(value) if isinstance(value, float) else text(value)
