"""Plots at the size of a paper's column: every text is inside, none touches another, none is small."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hostler.analysis.plots import draw, save
from hostler.analysis.plots.chart import PALETTE, Axis, Chart, Heat, Panel, Points, Polyline
from hostler.analysis.plots.drawing import KINDS
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.results import results
from hostler.analysis.plots.slices import contour
from hostler.analysis.plots.source import source
from hostler.analysis.plots.styles import styled
from hostler.analysis.plots.with_matplotlib import figure
from hostler.errors import UsageError
from seen_world import Seen, gallery

COLUMN, PAGE = 3.5, 7.2  # inches of a column of two on a page, and of both
SIDE_BY_SIDE = {"slices"}  # a plot for each parameter: over both columns
SMALLEST = 6.5  # points
LONG = {
    "optimizer_and_its_learning_rate_schedule": "adamw with cosine annealing and warm restarts",
    "a": "resnet18-pretrained-on-imagenet",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


def texts(drawn: Any) -> Iterator[Any]:
    """All texts that are seen; ticks outside their axis are not."""
    from matplotlib.text import Text

    drawn.canvas.draw()
    hidden = set()
    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            low, high = low - abs(low) * 1e-9, high + abs(high) * 1e-9
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                outside = not low <= tick.get_loc() <= high
                hidden |= {id(tick.label1), id(tick.label2)} if outside or not axis.get_visible() else set()
        if not axes.axison:
            hidden |= {id(one) for one in axes.findobj(Text)}
    for one in drawn.findobj(Text):
        if one.get_text().strip() and one.get_visible() and id(one) not in hidden:
            yield one


def faults(chart: Chart, style: str = "") -> list[str]:
    """Texts that are cut by the figure's edge, that touch another, or that are too small."""
    with styled(style):
        drawn = figure(chart)
        shown = [(one.get_text(), one.get_window_extent(), one.get_fontsize()) for one in texts(drawn)]
        width, height = drawn.get_size_inches() * drawn.dpi
    found = [f"cut: {text}" for text, box, _ in shown if box.x0 < -1 or box.y0 < -1]
    found += [f"cut: {text}" for text, box, _ in shown if box.x1 > width + 1 or box.y1 > height + 1]
    found += [f"small: {text}" for text, _, size in shown if size < SMALLEST]
    for (a, one, _), (b, other, _) in combinations(shown, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        if wide > 0.5 and high > 0.5:
            found.append(f"touch: {a} / {b}")
    assert shown
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sweep", ["cifar-grid", "odd-values", None])
def test_no_label_overlaps_or_is_cut(seen: Seen, kind: str, sweep: str | None) -> None:
    given = {"row": "model", "column": "lr", "legend": "seed"} if kind == "grid" and sweep else {}
    given = given if sweep == "cifar-grid" else {}
    assert faults(draw(seen.url, kind, sweep, **given)) == []


@pytest.mark.parametrize("kind", ["results", "parallel", "slices", "contour", "importance", "completion"])
def test_long_names_of_parameters_and_values_fit(seen: Seen, kind: str) -> None:
    found = source(seen.store, "cifar-grid")
    runs = [
        replace(run, params={key: f"{value} {n % 7}" for key, value in LONG.items()} | {"lr": 10.0**-n})
        for n, run in enumerate(found.runs)
    ]
    long = replace(found, runs=runs, keys=(*LONG, "lr"), metric=found.metric)
    by = {"by": next(iter(LONG))} if kind in ("results", "completion") else {}
    assert faults(KINDS[kind][0](long, Look(**by))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_plot_is_as_wide_as_a_column(seen: Seen, kind: str) -> None:
    with styled():
        width = figure(draw(seen.url, kind, "cifar-grid")).get_figwidth()
    assert width <= (PAGE if kind in SIDE_BY_SIDE else COLUMN)


def test_mean_line_is_over_groups_of_several_alone(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    single = [run for run in found.runs if run.params["seed"] == 0 and run.params["model"] == "resnet18"]
    alone = results(replace(found, runs=single), Look(by="lr")).panels[0].marks
    assert not [mark for mark in alone if isinstance(mark, Polyline)]
    mixed = [*single, next(run for run in found.runs if run.params["seed"] == 1)]
    [mean] = [
        m
        for m in results(replace(found, runs=mixed), Look(by="lr")).panels[0].marks
        if isinstance(m, Polyline)
    ]
    assert len(mean.x) == 1, "one group has two runs"
    assert [m for m in alone if isinstance(m, Points)]


def test_contour_of_a_category_has_cells_and_no_surface(seen: Seen) -> None:
    found = source(seen.store, "cifar-grid")
    [heat] = [m for m in contour(found, Look(keys=("lr", "model"))).panels[0].marks if isinstance(m, Heat)]
    assert heat.cells and len(heat.y) == 2 and len(heat.x) == 6
    [smooth] = [m for m in contour(found, Look(keys=("lr", "seed"))).panels[0].marks if isinstance(m, Heat)]
    assert not smooth.cells


@pytest.mark.parametrize("style", ["", "dark"])
def test_pdf_is_written_with_fonts_that_printers_take(seen: Seen, tmp_path: Path, style: str) -> None:
    path = save(draw(seen.url, "results", "cifar-grid"), tmp_path / "results.pdf", style=style)
    data = path.read_bytes()
    assert data.startswith(b"%PDF") and b"/Type3" not in data


def test_style_file_changes_size_and_letters(seen: Seen, tmp_path: Path) -> None:
    own = tmp_path / "mine.mplstyle"
    own.write_text("# mine\nfigure.figsize: 6, 3\nfont.size: 12\nxtick.labelsize: 11\n")
    chart = draw(seen.url, "best", "cifar-grid")
    with styled(str(own)):
        drawn = figure(chart)
        assert drawn.get_figwidth() == 6
        assert drawn.axes[0].get_xticklabels()[0].get_fontsize() == 11
    assert faults(chart, str(own)) == []
    assert save(chart, tmp_path / "best.svg", style=str(own)).read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("lines", "said"),
    [("font.sise: 9\n", ":1: 'font.sise: 9' is not"), ("font.size: big\n", ":1: "), ("hello\n", "'hello'")],
)
def test_bad_style_file_is_named_by_its_line(seen: Seen, tmp_path: Path, lines: str, said: str) -> None:
    own = tmp_path / "mine.mplstyle"
    own.write_text(lines)
    with pytest.raises(UsageError) as raised:
        save(draw(seen.url, "best", "cifar-grid"), tmp_path / "x.png", style=str(own))
    assert said in raised.value.message
    assert not (tmp_path / "x.png").exists()


def test_missing_style_and_style_of_a_page_are_refused(seen: Seen, tmp_path: Path) -> None:
    chart = draw(seen.url, "best", "cifar-grid")
    with pytest.raises(UsageError, match="no such file"):
        save(chart, tmp_path / "x.png", style="nowhere.mplstyle")
    with pytest.raises(UsageError, match="--style is for"):
        save(chart, tmp_path / "x.html", style="dark")


def test_letters_of_no_font_are_said_in_one_line(tmp_path: Path) -> None:
    chart = Chart(
        "正解率", [Panel([Polyline([0, 1], [0, 1], "学習率", PALETTE[0])], Axis("x"), Axis("正解率"))]
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        save(chart, tmp_path / "x.png")
    lines = [str(one.message) for one in said]
    assert len(lines) <= 1  # none where a font has them
    assert all(line.startswith("hostler: no font here has ") and "正解率" in line for line in lines)
