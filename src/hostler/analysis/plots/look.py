"""Options of a plot."""

from __future__ import annotations

from hostler.analysis.plots.chart import Axis
from hostler.frozen import dataclass


@dataclass(frozen=True)
class Look:
    """Options; each kind of plot uses those that mean something to it."""

    by: str | None = None
    row: str | None = None
    column: str | None = None
    legend: str | None = None
    keys: tuple[str, ...] = ()  # parameters: of slices, of a contour, of parallel coordinates
    x: str = "step"  # along a curve: step, time, or another metric
    log_x: bool = False
    log_y: bool = False
    low: float | None = None
    high: float | None = None
    top: int = 10

    def axis_y(self, title: str) -> Axis:
        return Axis(title, log=self.log_y, low=self.low, high=self.high)

    def axis_x(self, title: str, marks: tuple[tuple[float, str], ...] = (), log: bool = False) -> Axis:
        return Axis(title, log=(self.log_x or log) and not marks, marks=marks)
