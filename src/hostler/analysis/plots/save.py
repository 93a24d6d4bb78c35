"""Saves a chart to a file: PNG, SVG or PDF by matplotlib; self-contained HTML by plotly."""

from __future__ import annotations

from pathlib import Path

from hostler import made_files
from hostler.analysis.plots import with_matplotlib, with_plotly
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.page import card, page
from hostler.errors import UsageError

ENDINGS = (".png", ".svg", ".pdf", ".html")


def save(chart: Chart, path: str | Path, *, style: str = "") -> Path:
    """Write it; the file's ending says how. `style`: `dark`, a style of matplotlib's, or a file of one."""
    path = Path(path)
    ending = check(path)
    if style and ending == ".html":
        raise UsageError("--style is for .png, .svg and .pdf", hint=f"-o {path.stem}.pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending == ".html":
        body = ["<main>", card(0, chart, "h1"), "</main>"]
        text = page(chart.title, body, [with_plotly.figure(chart)])
        path.write_text(text, encoding="utf-8")
    else:
        with_matplotlib.write(chart, path, style)
    made_files.mark(path)
    return path


def check(path: Path, option: str = "-o") -> str:
    """Its ending; UsageError where no plot has it."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        hint = f"{option} {path.stem or 'plot'}.png"
        raise UsageError(f"{path.name}: a plot is saved as {', '.join(ENDINGS)}", hint=hint)
    return ending
