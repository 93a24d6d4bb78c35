"""A chart as plain data: panels with axes and marks, for any drawing library.

Texts are what people and scripts chose, and stay text: each drawer escapes them in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from hostler.frozen import dataclass

PALETTE = (
    "#2c6e68",
    "#c8702a",
    "#6a55a8",
    "#3a78b5",
    "#b8476b",
    "#9a8412",
    "#4c8f4a",
    "#8b4fa0",
    "#2f8fa3",
    "#b1463c",
)
STATES = {
    "done": "#2c8a5c",
    "pruned": "#8a6cc0",
    "stopped": "#8b847c",
    "failed": "#c23b32",
    "diverged": "#c8702a",
    "running": "#3a78b5",
    "paused": "#b59a2b",
    "paused at a rung": "#97a1a6",
    "queued": "#c9ced1",
    "unreadable": "#7a1f1a",
}
GREY = "#b9c0c2"  # what is only there to be compared with
DIM = "#828c91"  # what is beside the point, and yet to be read
LARGEST = 1e150  # the square of a number on an axis is one, too
MANY = 40  # values of a text axis that have a mark each


def is_drawable(value: float) -> bool:
    """Whether it has a place on an axis: no NaN, not infinite, not so large that sums overflow."""
    return abs(value) < LARGEST


@dataclass(frozen=True)
class Axis:
    title: str = ""
    log: bool = False
    low: float | None = None
    high: float | None = None
    marks: tuple[tuple[float, str], ...] = ()  # where, what: for values that are no numbers
    hidden: bool = False


@dataclass(frozen=True)
class Polyline:
    """A curve, or a polyline with gaps (None)."""

    x: Sequence[float | None]
    y: Sequence[float | None]
    name: str = ""
    colour: str = PALETTE[0]
    width: float = 1.6
    opacity: float = 1.0
    legend: bool = True
    steps: bool = False  # a value holds until the next


@dataclass(frozen=True)
class ShadedArea:
    """The space between two curves."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    colour: str = PALETTE[0]


@dataclass(frozen=True)
class Points:
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    colour: str = PALETTE[0]
    values: Sequence[float] | None = None  # coloured by these, on the chart's scale
    texts: Sequence[str] = ()
    size: float = 7
    opacity: float = 0.85
    legend: bool = True


@dataclass(frozen=True)
class Bars:
    """A horizontal bar for each label; series of equal labels are stacked."""

    labels: Sequence[str]
    values: Sequence[float]
    name: str = ""
    colour: str = PALETTE[0]
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Heat:
    """Values over a plane; rows of `z` go with `y`."""

    x: Sequence[float]
    y: Sequence[float]
    z: Sequence[Sequence[float]]
    title: str = ""
    cells: bool = False  # one colour for each place: nothing lies between two categories


@dataclass(frozen=True)
class Labels:
    """Texts at places of a panel: `across` and `up` name the side of a text that is there, `offset` the
    points between."""

    x: Sequence[float]
    y: Sequence[float]
    texts: Sequence[str]
    across: str = "center"
    up: str = "center"
    offset: tuple[float, float] = (0.0, 0.0)


Mark = Polyline | ShadedArea | Points | Bars | Heat | Labels


@dataclass(frozen=True)
class Panel:
    marks: Sequence[Mark]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""


@dataclass(frozen=True)
class Chart:
    title: str
    panels: Sequence[Panel]
    columns: int = 1
    note: str = ""  # what is not shown, or how something was computed
    scale: str = ""  # title of the colours of points that have values
    legend: bool = True
    wide: bool = False  # needs the width of a page, not of a column
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return max(1, -(-len(self.panels) // self.columns))

    @property
    def has_marks(self) -> bool:
        return any(panel.marks for panel in self.panels)

    def _repr_png_(self) -> bytes:
        """As Jupyter shows it."""
        from hostler.analysis.plots.with_matplotlib import png

        return png(self)


def empty(title: str, why: str) -> Chart:
    """A chart of nothing, which says so."""
    return Chart(title, [Panel([])], note=why, legend=False)
