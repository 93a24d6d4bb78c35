"""Saves a chart to a file: PNG, SVG or PDF by matplotlib; self-contained HTML by plotly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hostler import made_files
from hostler.analysis.plots import with_matplotlib, with_plotly
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.page import page
from hostler.errors import UsageError

ENDINGS = (".png", ".svg", ".pdf", ".html")


def save(chart: Chart, path: str | Path) -> Path:
    """Write it; the file's ending says how."""
    return save_all([chart], Path(path))


def check(path: Path, option: str = "-o") -> str:
    """Its ending; UsageError where no plot has it."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        hint = f"{option} {path.stem or 'plot'}.png"
        raise UsageError(f"{path.name}: a plot is saved as {', '.join(ENDINGS)}", hint=hint)
    return ending


def save_all(charts: Sequence[Chart], path: Path) -> Path:
    """Save the charts to one file; several charts need an HTML page."""
    ending = check(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending == ".html":
        body = [f'<div class="plot" id="plot-{n}"></div>' for n in range(len(charts))]
        text = page(charts[0].title, body, [with_plotly.figure(chart) for chart in charts])
        path.write_text(text, encoding="utf-8")
    else:
        with_matplotlib.write(charts[0], path)
    made_files.mark(path)
    return path
