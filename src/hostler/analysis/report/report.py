"""`report`: plots, table, errors and the best runs of a sweep in one HTML file that needs nothing else.

Whatever a script or a person chose as a name goes through `html.escape`, or into the page as data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from hostler.analysis.damage_report import warn
from hostler.analysis.plots import with_plotly
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.curveplots import best, grid
from hostler.analysis.plots.importance import importance
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.page import card, page
from hostler.analysis.plots.parallel import parallel
from hostler.analysis.plots.progress import completion, cost, trend
from hostler.analysis.plots.results import results
from hostler.analysis.plots.slices import contour, slices
from hostler.analysis.plots.source import PlotRun, PlotSource, source
from hostler.analysis.plots.source import short as short_text
from hostler.analysis.plots.spending import spending
from hostler.analysis.purposes import Purposes
from hostler.analysis.report.conclusion import conclusion
from hostler.records.rows import Row, rows
from hostler.records.run import upstream
from hostler.records.sweep import error_groups, sweeps
from hostler.records.sweep.error_groups import ErrorGroup
from hostler.records.sweep.metric_advice import advice
from hostler.records.sweep.summary import Summary, of_sweep, unfinished
from hostler.spec.job import Job
from hostler.spec.states import DONE, PRUNED
from hostler.spec.units import show_duration, show_number
from hostler.store import Store

BEST = 5
ERRORS = 50
NAMES = 12  # runs named with an error


def report(
    store: Store, sweep: str, *, metric: str | None = None, goal: str | None = None, of: str | None = None
) -> str:
    """The page's text."""
    job, short = sweeps.load(store, sweep), of_sweep(store, sweep, warn)
    seen = source(store, sweep, metric=metric, goal=goal, of=of)
    made = [*_charts(seen), *_spending(store, sweep)]
    charts = [chart for chart in made if chart.has_marks]  # an empty card says nothing
    groups = error_groups.groups(list(error_groups.failed(store, [run.row for run in seen.runs])))
    body = [
        *_head(store, job, short, seen),
        *([] if metric else _unnamed(store, sweep)),
        *_best(store, short, seen),
        *(["<h2>Plots</h2>"] if made else []),
        *(card(n, chart) for n, chart in enumerate(charts)),
        *(f'<p class="muted">{_text(c.title)}: {_text(c.note)}.</p>' for c in made if not c.has_marks),
        *_errors(groups),
        *_table_place(seen),
    ]
    script = (files("hostler.analysis.report") / "table.js").read_text("utf-8")
    figures = [with_plotly.figure(chart) for chart in charts]
    return page(f"{job.called} – hostler", body, figures, data=_rows(seen), script=script)


def _charts(seen: PlotSource) -> Iterator[Chart]:
    look = Look()
    yield trend(seen, look)
    yield best(seen, look)
    if seen.varying:
        yield results(seen, look)
        yield importance(seen, look)
        yield parallel(seen, look)
        yield slices(seen, look)
        if len(seen.varying) > 1:
            yield contour(seen, look)
        if any(run.row.attempt for run in seen.runs):
            yield grid(seen, Look(legend=_few(seen)))
    yield cost(seen, look)
    yield completion(seen, look)


def _spending(store: Store, sweep: str) -> Iterator[Chart]:
    """Nothing where no launch of the sweep has a price."""
    if purposeses := Purposes(store).read(sweep):
        yield spending(purposeses)


def _few(seen: PlotSource) -> str | None:
    """A parameter of few values, for lines that average over the rest."""
    counted = [(len({repr(run.at(key)) for run in seen.runs}), key) for key in seen.varying]
    fit = [key for n, key in counted if n <= 8 and key != "seed"]
    return fit[0] if fit else None


def _text(value: Any) -> str:
    return escape("".join(c if c.isprintable() else " " for c in str(value)))


def _head(store: Store, job: Job, short: Summary, seen: PlotSource) -> Iterator[str]:
    yield "<main><header>"
    yield f"<h1>{_text(job.called)}</h1>"
    now = time.time()
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(now))
    made = f'{_text(job.method or "runs")} · made <time data-at="{now:.0f}" title="{when}">{when}</time>'
    yield f'<p class="muted"><span class="store">{_text(store.url)}</span> · {made}</p>'
    told = conclusion(seen, short.counts)
    if told:
        words = (f"<code>{_text(part)}</code>" if is_code else _text(part) for part, is_code in told)
        yield f'<p class="lead">{"".join(words)}</p>'
    facts = [(f"{short.runs:,}", "runs"), *((f"{n:,}", state) for state, n in short.counts.items())]
    if seen.ranked:
        facts.append((show_number(seen.ranked[0].value), f"best {seen.metric}"))
    if short.seconds:
        facts.append((show_duration(short.seconds), "a run"))
    if taken := sum(run.row.seconds or 0.0 for run in seen.runs):
        facts.append((show_duration(taken), "of runs in all"))
    items = "".join(
        f"<li><b>{_text(value)}</b><span class=muted>{_text(name)}</span></li>" for value, name in facts
    )
    yield f'<ul class="facts">{items}</ul>'
    for line in filter(None, (short.halted and f"halted: {short.halted}", short.unlogged)):
        yield f'<p class="bad">{_text(line)}</p>'
    if job.notes:
        yield f"<p>{_text(job.notes)}</p>"
    yield "</header>"


def without_metric(store: Store, sweep: str) -> str:
    """The line to add to the file of a sweep that names no metric; empty if it names one."""
    job = sweeps.load(store, sweep)
    if job.metric:
        return ""
    found = rows(store, [sweep], touched=True, say=warn)
    return f"{job.name} names no metric: {advice(store, job, found)}"


def _unnamed(store: Store, sweep: str) -> Iterator[str]:
    if line := without_metric(store, sweep):
        yield f'<p class="muted">{_text(line)}</p>'


def _best(store: Store, short: Summary, seen: PlotSource) -> Iterator[str]:
    yield "<h2>Best runs, and how to download them</h2>"
    ranked = [run for run in seen.ranked if run.row.state in ("done", "pruned")][:BEST]
    if not ranked:
        ended = short.counts.get(DONE) or short.counts.get(PRUNED)
        why = seen.why_none if ended else unfinished(short)[0]
        yield f'<p class="muted">No best run: {_text(why)}.</p>'
        return
    yield '<ol class="best card">'
    for run in ranked:
        params = " ".join(f"{key}={short_text(value)}" for key, value in run.params.items())
        value = f'<span title="{run.value!r}">{_text(run.shown)}</span>'
        yield (
            f"<li><div><strong>{_text(run.row.name)}</strong> {_text(seen.metric)} {value}<br>"
            f'<span class="muted">{_text(params)}</span></div>{_pull(store, run.row)}</li>'
        )
    yield "</ol>"


def _pull(store: Store, row: Row) -> str:
    if not upstream.left_files(store, row):
        return ""
    return f"<code>hostler pull {_text(row.copy_of or row.name)}</code>"


def _errors(groups: Sequence[ErrorGroup]) -> Iterator[str]:
    yield "<h2>Errors</h2>"
    if not groups:
        yield '<p class="muted">No current errors.</p>'
        return
    yield '<div class="card">'
    for n, group in enumerate(groups[:ERRORS]):
        count = f"{group.count} × " if group.count > 1 else ""
        runs = ", ".join(group.runs[:NAMES]) + (" …" if len(group.runs) > NAMES else "")
        yield f'<details{" open" if n == 0 else ""}><summary><strong class="bad">{count}{_text(group.kind)}'
        yield f"</strong> {_text(group.message)}</summary>"
        yield f'<p class="muted">{_text(runs)}</p>'
        if group.traceback:
            yield f'<pre tabindex="0">{escape(group.traceback)}</pre>'
        if group.advice:
            yield f"<p>→ {_text(group.advice)}</p>"
        yield "</details>"
    yield "</div>"


def _table_place(seen: PlotSource) -> Iterator[str]:
    yield "<h2>All runs</h2>"
    yield (
        '<div class="bar"><input type="search" id="filter" aria-label="Filter runs" placeholder="Filter">'
        '<span class="muted" id="count" role="status"></span></div>'
        '<div class="card scroll" tabindex="0" role="region" aria-label="All runs">'
        '<table id="runs"></table></div></main>'
    )


def _rows(seen: PlotSource) -> dict[str, Any]:
    """The table as columns: facts, metrics, parameters that differ."""
    metrics = sorted({n for run in seen.runs for n in run.row.metrics if not n.startswith("system/")})
    metrics.sort(key=lambda name: name != seen.metric)
    keys = seen.varying or list(seen.keys)
    paid = ["cost"] if any(run.row.cost is not None for run in seen.runs) else []
    hosts = ["host"] if len({run.row.host for run in seen.runs if run.row.host}) > 1 else []
    columns = ["run", "state", *keys, *metrics, "time", *paid, *hosts]
    rows = [
        [
            run.row.name,
            run.row.state,
            *(run.params.get(k) for k in keys),
            *(_logged(run, m, seen.metric) for m in metrics),
            run.row.seconds,
            *(run.row.cost for _ in paid),
            *(run.row.host for _ in hosts),
        ]
        for run in seen.runs
    ]
    kinds = [
        "",
        "",
        *(["param"] * len(keys)),
        *(["metric"] * len(metrics)),
        "time",
        *paid,
        *([""] * len(hosts)),
    ]
    best = seen.ranked[0].row.name if len(seen.runs) > 1 and seen.ranked else None
    by = {"column": 2 + len(keys), "down": seen.sign > 0} if seen.metric in metrics else None
    return {"columns": columns, "kinds": kinds, "rows": rows, "best": best, "by": by}


def _logged(run: PlotRun, metric: str, ranked: str) -> float | None:
    """A metric's last value; of the one that runs are ranked by the value that counts."""
    return run.row.judged.value if metric == ranked and run.row.judged else run.row.metrics.get(metric)
