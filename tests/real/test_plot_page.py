"""Plots as pages in a real browser and as pictures for a paper: every kind looks as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from golden_pictures import LOOKS, differs, faults_of_page, tab_of
from hostler.analysis.plots import draw, save
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.drawing import KINDS
from seen_world import Seen

pytestmark = [pytest.mark.real, pytest.mark.needs("chromium")]

# Names of a legend that its own scrolling hides, or titles of axes that lie under it.
CUT = """() => { const legend = document.querySelector('.legend .bg')?.getBoundingClientRect();
  const bottoms = (name) => [...document.querySelectorAll(name)].map(
    one => [one.getBoundingClientRect().bottom, one.textContent]);
  return legend ? [...bottoms('.xtitle').filter(one => one[0] > legend.y + 3),
    ...bottoms('.legendtext').filter(one => one[0] > legend.bottom + 1)] : [] }"""
OPTIONS: dict[str, dict[str, Any]] = {
    "results": {"by": "lr"},
    "grid": {"column": "model", "legend": "lr"},
    "contour": {"keys": ("lr", "model")},
}


@pytest.fixture(scope="module")
def charts(seen: Seen) -> dict[str, Chart]:
    return {kind: draw(seen.url, kind, "cifar-grid", **OPTIONS.get(kind, {})) for kind in KINDS}


@pytest.mark.parametrize(("medium", "size", "theme"), LOOKS)
def test_every_plot_fits_is_axe_clean_and_looks_as_before(
    browser: Any, charts: dict[str, Chart], tmp_path: Path, medium: str, size: tuple[int, int], theme: str
) -> None:
    tab = tab_of(browser, "file:", size, theme)
    wrong = []
    for kind, chart in charts.items():
        tab.page.goto(save(chart, tmp_path / f"{kind}.html").as_uri(), timeout=300_000)
        tab.page.locator("svg.main-svg").first.wait_for()
        if medium == "narrow":
            assert tab.page.evaluate(CUT) == [], kind
        wrong += faults_of_page(tab, f"plot-{kind}", medium, theme)
        if medium == "wide" and (missed := tab.unreached()) != ([], set()):
            wrong.append(f"{kind}: by Tab not reached, and not seen: {missed}")
    assert wrong == []
    tab.check()
    tab.context.close()


def test_every_plot_for_a_papers_column_looks_as_before(charts: dict[str, Chart], tmp_path: Path) -> None:
    pictures = {kind: save(chart, tmp_path / f"{kind}.png").read_bytes() for kind, chart in charts.items()}
    assert [said for kind, png in pictures.items() if (said := differs(f"column-{kind}", png))] == []
