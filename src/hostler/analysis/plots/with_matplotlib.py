"""A chart as PNG, SVG or PDF, by matplotlib, without a screen: as wide as a paper's column, or as its page.

Text is shown as it is: a dollar sign does not start a formula. Title, legend and note have room of their own,
so that the plot's size is that of the style file.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler.analysis.plots.chart import (
    Axis,
    Bars,
    Chart,
    Heat,
    Labels,
    Mark,
    Panel,
    Points,
    Polyline,
    ShadedArea,
    is_drawable,
)
from hostler.analysis.plots.label_fit import Ruler, middle, settle, tick_formatter
from hostler.analysis.plots.on_dark import legible, veil, writing
from hostler.analysis.plots.styles import letters_said, styled

SCREEN_DPI = 160  # in a notebook
PAGE = 2.1  # widths of a column that a page has
RAMP = ("#443a83", "#2c8e8c", "#f2c14b")
LEGEND = 12  # names in a legend
BOLD = 0.86  # of the room: a title is bold, its measure is not
PAD = 0.04  # inches around title, legend and note


def write(chart: Chart, path: Path, style: str = "") -> None:
    """By the file's ending: .png, .svg, .pdf."""
    with styled(style), letters_said(path.name):
        dateless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
        figure(chart).savefig(path, metadata=dateless)


def png(chart: Chart) -> bytes:
    held = io.BytesIO()
    with styled(), letters_said("the plot"):
        figure(chart).savefig(held, dpi=SCREEN_DPI, format="png")
    return held.getvalue()


def figure(chart: Chart) -> Any:
    """The drawn figure, in the style that holds now."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    width, height = rcParams["figure.figsize"]
    wide = width * (PAGE if chart.columns > 1 or chart.wide else 1)
    tall = (height if chart.rows == 1 else height * 0.78 * chart.rows) * _share(chart)
    made: Any = Figure(figsize=(wide, tall), layout="constrained")
    shared = {f"share{which}": _is_shared(chart, which) for which in "xy"}
    cells = made.subplots(chart.rows, chart.columns, squeeze=False, **shared)
    ruler = Ruler(made)
    stacked: dict[int, dict[str, float]] = {}
    for n, panel in enumerate(chart.panels):
        axes = cells[n // chart.columns][n % chart.columns]
        stacked[n] = {}
        for mark in panel.marks:
            _mark(made, axes, mark, chart, stacked[n])
        _axis(axes, "x", panel.x, panel)
        _axis(axes, "y", panel.y, panel)
    for axes in list(cells.flat)[len(chart.panels) :]:
        axes.set_axis_off()
    if not chart.has_marks:
        for axes in cells.flat:
            axes.set_axis_off()
    _around(made, chart, ruler, tall)
    for _ in range(2):  # names take room from the panels that they are wrapped to
        _name_panels(made, cells, chart, ruler)
        settle(made)
    for n, panel in enumerate(chart.panels):
        _bar_texts(cells[n // chart.columns][n % chart.columns], panel)
    return made


def _share(chart: Chart) -> float:
    """The part of the usual height that a chart needs: few bars need little."""
    bars = [len(mark.labels) for panel in chart.panels for mark in panel.marks if isinstance(mark, Bars)]
    return min(1.0, 0.3 + 0.14 * max(bars)) if bars else 1.0


def _is_shared(chart: Chart, which: str) -> bool:
    """Whether all panels have one axis, so that they can be compared."""
    return len(chart.panels) > 1 and len({getattr(panel, which) for panel in chart.panels}) == 1


def words(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:300]


def _around(figure: Any, chart: Chart, ruler: Ruler, tall: float) -> None:
    """Title above, legend and note below; the figure grows by what they need."""
    from matplotlib import rcParams

    dpi, wide = figure.dpi, figure.get_figwidth()
    room = (wide - 2 * PAD) * dpi
    title_size, small = _size("figure.titlesize"), _size("legend.fontsize")
    title = ruler.wrapped(words(chart.title), room * BOLD, title_size)
    above = figure.text(0, 0, title, ha="left", va="top", fontsize=title_size, fontweight="bold")
    noted = words(chart.note) if chart.has_marks else ""
    note = figure.text(
        0, 0, ruler.wrapped(noted, room * 0.97, small), ha="left", va="bottom", fontsize=small, color=_quiet()
    )
    if not chart.has_marks:
        text = ruler.wrapped(words(chart.note), room * 0.9, rcParams["font.size"])
        figure.text(0.5, 0.5, text, ha="center", va="center", color=_quiet())
    legend = _legend(figure, chart, ruler, room)
    top = above.get_window_extent().height / dpi + 2 * PAD
    low = (note.get_window_extent().height / dpi + 2 * PAD) if noted else PAD
    names = legend.get_window_extent().height / dpi + PAD if legend else 0.0
    whole = tall + top + low + names
    figure.set_figheight(whole)
    above.set_position((PAD / wide, 1 - PAD / whole))
    note.set_position((PAD / wide, PAD / whole))
    if legend:
        legend.set_bbox_to_anchor((0.5, low / whole), transform=figure.transFigure)
    figure.get_layout_engine().set(rect=(0, (low + names) / whole, 1, tall / whole))


def _legend(figure: Any, chart: Chart, ruler: Ruler, room: float) -> Any:
    """The names of all panels once, in as many columns as there is room for."""
    known: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(name, handle)
    known = {name: handle for name, handle in known.items() if not name.startswith("_")}
    if not chart.legend or not known or len(known) > LEGEND:
        return None
    size = _size("legend.fontsize")
    names = [ruler.squeezed(name, room * 0.85, size) for name in known]
    for columns in range(min(4, len(names)), 0, -1):
        legend = figure.legend(list(known.values()), names, loc="lower center", ncols=columns, borderpad=0.2)
        if columns == 1 or legend.get_window_extent().width <= room:
            return legend
        legend.remove()
    return None


def _name_panels(figure: Any, cells: Any, chart: Chart, ruler: Ruler) -> None:
    """Titles of panels and axes, wrapped to their panel; an axis that a whole row or column shares, once."""
    figure.canvas.draw()
    size, label = _size("axes.titlesize"), _size("axes.labelsize")
    shared_x, shared_y = _is_shared(chart, "x"), _is_shared(chart, "y")
    for n, panel in enumerate(chart.panels):
        axes = cells[n // chart.columns][n % chart.columns]
        box = axes.get_window_extent()
        if panel.title:
            axes.set_title(ruler.wrapped(words(panel.title), box.width, size), fontsize=size)
        is_last = n + chart.columns >= len(chart.panels)
        if is_last or not shared_x:
            axes.set_xlabel(ruler.wrapped(words(panel.x.title), box.width, label))
        if n % chart.columns == 0 or not shared_y:
            axes.set_ylabel(ruler.wrapped(words(panel.y.title), box.height * 0.95, label))


def _size(setting: str) -> float:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    settings: Any = rcParams
    return float(FontProperties(size=settings[setting]).get_size_in_points())


def _axis(axes: Any, which: str, axis: Axis, panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    if axis.log:
        with warnings.catch_warnings(record=True) as said:
            getattr(axes, f"set_{which}scale")("log", nonpositive="mask")
        if said:
            axes.text(0.5, 0.5, "no value above 0", transform=axes.transAxes, ha="center", color=_quiet())
    own = getattr(axes, f"{which}axis")
    low, high = axis.low, axis.high
    if low is not None or high is not None:
        getattr(axes, f"set_{which}lim")(low, high)
    if axis.hidden:
        own.set_visible(False)
        axes.spines[:].set_visible(False)
        return
    if axis.marks:
        names = [words(middle(text, 20)) for _, text in axis.marks]
        getattr(axes, f"set_{which}ticks")([v for v, _ in axis.marks], names)
        return
    if which == "y" and any(isinstance(mark, Bars) for mark in panel.marks):
        return
    own.set_minor_locator(NullLocator())
    own.set_major_formatter(tick_formatter())
    if axis.log:
        ends = sorted(abs(v) for v in own.get_view_interval())
        short = ends[0] > 0 and ends[1] / ends[0] < 30
        own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=6))
    else:
        own.set_major_locator(MaxNLocator(nbins=5, integer=_is_whole(panel, which), min_n_ticks=2))


def _is_whole(panel: Panel, which: str) -> bool:
    """Whether an axis has whole numbers alone: steps, runs."""
    held = [m for m in panel.marks if isinstance(m, (Polyline, Points))]
    values = [v for mark in held for v in getattr(mark, which) if v is not None]
    if which == "x":
        values += [v for mark in panel.marks if isinstance(mark, Bars) for v in mark.values]
    return bool(values) and all(is_drawable(v) and v == int(v) for v in values)


def _mark(figure: Any, axes: Any, mark: Mark, chart: Chart, left: dict[str, float]) -> None:
    if isinstance(mark, Polyline):
        style = "steps-post" if mark.steps else "default"
        shown = words(mark.name) if mark.legend and mark.name else "_"
        axes.plot(
            _plain(mark.x),
            _plain(mark.y),
            color=_ink(mark.colour),
            linewidth=mark.width * 0.62,
            alpha=veil(mark.opacity, _ground()),
            label=shown,
            drawstyle=style,
        )
    elif isinstance(mark, ShadedArea):
        axes.fill_between(mark.x, mark.low, mark.high, color=_ink(mark.colour), alpha=0.16, linewidth=0)
    elif isinstance(mark, Points):
        _points(figure, axes, mark, chart)
    elif isinstance(mark, Bars):
        _bars(axes, mark, left)
    elif isinstance(mark, Labels):
        _labels(axes, mark)
    else:
        _heat(figure, axes, mark)


def _points(figure: Any, axes: Any, mark: Points, chart: Chart) -> None:
    over_heat = any(isinstance(one, Heat) for panel in chart.panels for one in panel.marks)
    coloured: dict[str, Any] = {"color": mark.colour if over_heat else _ink(mark.colour)}
    if mark.values is not None:
        coloured = {"c": _plain(mark.values), "cmap": _ramp([_ink(colour) for colour in RAMP])}
    label = words(mark.name) if mark.legend and mark.name else "_"
    drawn = axes.scatter(
        _plain(mark.x),
        _plain(mark.y),
        s=(mark.size * 0.55) ** 2,
        alpha=mark.opacity,
        label=label,
        linewidths=0.5 if over_heat else 0,
        edgecolors="#ffffff" if over_heat else "none",  # seen on any ground
        clip_on=not over_heat,  # a run at the edge of what is known is a whole point
        zorder=3,
        **coloured,
    )
    if mark.values is not None and axes is figure.axes[0]:
        _colorbar(figure, drawn, figure.axes, chart.scale, shrink=0.7)


def _bars(axes: Any, mark: Bars, left: dict[str, float]) -> None:
    starts = [left.get(label, 0.0) for label in mark.labels]
    places, names = range(len(mark.labels)), [words(middle(label, 24)) for label in mark.labels]
    axes.barh(
        places, mark.values, left=starts, color=_ink(mark.colour), label=words(mark.name) or "_", height=0.6
    )
    axes.set_yticks(places, names)
    axes.grid(False, axis="y")
    axes.set_ylim(-0.6, len(names) - 0.4)
    for label, value in zip(mark.labels, mark.values, strict=True):
        left[label] = left.get(label, 0.0) + value


def _bar_texts(axes: Any, panel: Panel) -> None:
    """Texts of bars: inside a bar that holds its text, after a bar that stands alone; else none."""
    bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
    if len(bars) == 1:
        low, high = axes.get_xlim()
        axes.set_xlim(low, high + (high - low) * 0.12)
        axes.bar_label(axes.containers[0], [words(t) for t in bars[0].texts], padding=2, fontsize="small")
        return
    for mark, drawn in zip(bars, axes.containers, strict=False):
        for text, bar in zip(mark.texts, drawn, strict=False):
            box = bar.get_window_extent()
            place = (bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2)
            ink = writing(_ink(mark.colour))
            shown = axes.text(*place, words(text), ha="center", va="center", fontsize="small", color=ink)
            size = shown.get_window_extent()
            if size.width + 2 > box.width or size.height > box.height:
                shown.remove()


def _labels(axes: Any, mark: Labels) -> None:
    for x, y, text in zip(mark.x, mark.y, mark.texts, strict=True):
        axes.annotate(
            words(middle(text, 12)),
            (x, y),
            xytext=mark.offset,
            textcoords="offset points",
            ha=mark.across,
            va=mark.up,
            fontsize="small",
            annotation_clip=False,
        )


def _heat(figure: Any, axes: Any, mark: Heat) -> None:
    z = [_plain(row) for row in mark.z]
    axes.grid(False)
    if mark.cells:
        drawn = axes.pcolormesh(mark.x, mark.y, z, cmap=_ramp(), shading="nearest")
    else:
        drawn = axes.contourf(mark.x, mark.y, z, levels=14, cmap=_ramp())
    _colorbar(figure, drawn, axes, mark.title)


def _colorbar(figure: Any, drawn: Any, axes: Any, title: str, **given: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(drawn, ax=axes, **given)
    bar.outline.set_linewidth(0)
    bar.locator = MaxNLocator(nbins=4)
    bar.formatter = tick_formatter()
    bar.update_ticks()
    bar.set_label(words(middle(title, 24)), fontsize="small")


def _ramp(colours: Sequence[str] = RAMP) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("hostler", colours)


def _ink(colour: str) -> str:
    """A colour of ours as it is seen on the ground of the style that holds now."""
    return legible(colour, _ground())


def _ground() -> str:
    from matplotlib import rcParams
    from matplotlib.colors import to_hex

    return str(to_hex(rcParams["axes.facecolor"]))


def _quiet() -> str:
    """The colour of notes: that of the marks beside the axes."""
    from matplotlib import rcParams

    return str(rcParams["ytick.color"])


def _plain(values: Sequence[float | None]) -> list[float]:
    return [v if v is not None and is_drawable(v) else math.nan for v in values]
