"""Makes a chart of a store, by the kind of plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostler.analysis.chosen import Names
from hostler.analysis.plots.archived import archived
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.curveplots import archive, best, grid
from hostler.analysis.plots.importance import importance
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.parallel import parallel
from hostler.analysis.plots.progress import completion, cost, trend
from hostler.analysis.plots.results import results
from hostler.analysis.plots.slices import contour, slices
from hostler.analysis.plots.source import PlotSource, source
from hostler.errors import UsageError
from hostler.records.packs.packed_store import open_store
from hostler.spec.nearest import did_you_mean

Draw = Callable[[PlotSource, Look], Chart]

KINDS: dict[str, tuple[Draw, str]] = {
    "results": (results, "the metric by section, or by any parameter (--by)"),
    "best": (best, "the best run's curve among the others"),
    "grid": (grid, "curves in panels by --row and --column, lines by --legend; repeats averaged, with bands"),
    "parallel": (parallel, "parallel coordinates: an axis for each parameter"),
    "importance": (importance, "the importance of each parameter"),
    "slices": (slices, "the metric along each parameter"),
    "contour": (contour, "the metric over two parameters (--keys A,B)"),
    "trend": (trend, "the best so far, over runs and rounds"),
    "archive": (archive, "curves of the archive, or of the best runs of these sweeps (--top)"),
    "cost": (cost, "cost of runs against their result"),
    "completion": (completion, "the number of runs in each state"),
}


def draw(
    store: str,
    kind: str,
    sweep: Names = None,
    *,
    metric: str | None = None,
    goal: str | None = None,
    best: bool = False,
    **options: Any,
) -> Chart:
    """A chart of the runs of a store. `options` are the fields of `Look`."""
    if kind not in KINDS:
        raise UsageError(
            f"no plot named {kind!r}", hint=did_you_mean(kind, KINDS, f"choose from: {', '.join(KINDS)}")
        )
    opened = open_store(store)
    kept = archived(opened, metric=metric, goal=goal) if kind == "archive" and sweep is None else None
    plot_source = kept or source(opened, sweep, metric=metric, goal=goal, best=best)
    return KINDS[kind][0](plot_source, Look(**options))
