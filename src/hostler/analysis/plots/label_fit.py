"""Labels that fit: texts wrapped to the room they have, ticks turned or thinned until none touches another.

Everything is measured in pixels as it would be drawn; nothing is guessed from a count of letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hostler.spec.units import show_number

CUT = "…"
GAP = 3.0  # pixels between two labels
LINES = 3  # of a wrapped text


class Ruler:
    """Measures texts as a figure would draw them."""

    def __init__(self, figure: Any) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas: Any = FigureCanvasAgg(figure)
        self._renderer = canvas.get_renderer()

    def width(self, text: str, points: float) -> float:
        from matplotlib.font_manager import FontProperties

        text_width_height_descent = self._renderer.get_text_width_height_descent(
            text, FontProperties(size=points), False
        )
        return float(text_width_height_descent[0])

    def wrapped(self, text: str, room: float, points: float, lines: int = LINES) -> str:
        """The text in lines no wider than the room; what the last one cannot hold becomes an ellipsis."""
        done, words = list[str](), self._pieces(text, room, points)
        while words and len(done) < lines:
            taken = 1
            while taken < len(words) and self.width("".join(words[: taken + 1]).strip(), points) <= room:
                taken += 1
            if len(done) == lines - 1 and taken < len(words):
                taken = len(words)
            done.append(self.cut("".join(words[:taken]).strip(), room, points))
            words = words[taken:]
        return "\n".join(done)

    def _pieces(self, text: str, room: float, points: float) -> list[str]:
        """Where a line may be broken: after a space; after = / _ - too in a word wider than the room."""
        pieces = list[str]()
        for word in re.findall(r"\S+\s*|\s+", text):
            fits = self.width(word.strip(), points) <= room
            pieces += [word] if fits else re.findall(r"[^=/_-]+[=/_-]*\s*|[=/_-]+\s*", word)
        return pieces

    def cut(self, text: str, room: float, points: float) -> str:
        if self.width(text, points) <= room:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.width(text[:middle].rstrip() + CUT, points) <= room:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + CUT

    def squeezed(self, text: str, room: float, points: float) -> str:
        """The text without its middle where it is too wide: names differ at their ends."""
        low, high = 2, max(2, len(text))
        while low < high:
            kept = (low + high + 1) // 2
            if self.width(middle(text, kept), points) <= room:
                low = kept
            else:
                high = kept - 1
        return middle(text, low)


def tick_formatter() -> Any:
    """Ticks by the rule of all numbers, with more digits where four would show two of them alike."""
    from matplotlib.ticker import Formatter

    class Ticks(Formatter):  # type: ignore[misc, unused-ignore]
        def __call__(self, value: float, place: int | None = None) -> str:
            return show_number(value)

        def format_ticks(self, values: Sequence[float]) -> list[str]:
            shown, digits = [_clean(show_number(v)) for v in values], 4
            while len(set(shown)) < len(set(values)) and digits < 15:
                digits += 1
                shown = [f"{v:.{digits}g}" for v in values]
            return shown

    return Ticks()


def middle(text: str, most: int) -> str:
    """A long name with its middle left out: names that differ often do so at the end."""
    return text if len(text) <= most else f"{text[: most - most // 2 - 1]}{CUT}{text[-(most // 2) :]}"


def _clean(text: str) -> str:
    return "0" if text == "-0" else text


def settle(figure: Any) -> None:
    """Turn and thin the ticks of every axis until no label touches another.

    The figure is laid out once for all of its axes, then again while any of them changes."""
    left = [(axes, which, _change(axes, which)) for axes in figure.axes for which in "xy"]
    for turn in range(12):
        figure.draw_without_rendering()
        left = [
            (axes, which, change)
            for axes, which, change in left
            if _is_crowded(axes, which) and change(axes, turn)
        ]
        if not left:
            return


def _change(axes: Any, which: str) -> Callable[[Any, int], bool]:
    """What gives the labels of an axis more room; False when it has nothing more to give."""
    axis = getattr(axes, f"{which}axis")
    if not _is_named(axis):
        return _fewer(axis)
    return _turn_across if which == "x" else _thin_up


def touching(labels: Sequence[Any]) -> bool:
    """Whether any two of these texts touch; they are drawn already."""
    boxes = [label.get_window_extent() for label in labels if label.get_visible() and label.get_text()]
    boxes = [box.expanded(1, 1).padded(GAP / 2) for box in boxes if box.width > 0]
    return any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[n + 1 :])


def _is_crowded(axes: Any, which: str) -> bool:
    if not axes.axison:
        return False
    axis = getattr(axes, f"{which}axis")
    return touching(_shown(axis))


def _shown(axis: Any) -> list[Any]:
    """Labels of ticks inside the view: others are not drawn."""
    low, high = sorted(axis.get_view_interval())
    low, high = low - abs(low) * 1e-9, high + abs(high) * 1e-9
    return [
        tick.label1
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_visible()
    ]


def _is_named(axis: Any) -> bool:
    from matplotlib.ticker import FixedLocator

    return isinstance(axis.get_major_locator(), FixedLocator)


def _turn_across(axes: Any, turn: int) -> bool:
    """Turn names along x upright; where that does not help, leave out every second of them."""
    if turn == 0:
        for label in axes.get_xticklabels():
            label.set(rotation=90, ha="center", va="top")
        return True
    return _every_second(axes.xaxis)


def _thin_up(axes: Any, turn: int) -> bool:
    return _every_second(axes.yaxis)


def _every_second(axis: Any) -> bool:
    """Hide every second label; the ticks stay, and the first label."""
    shown = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
    for label in shown[1::2]:
        label.set_visible(False)
    return len(shown) > 2


def _fewer(axis: Any) -> Callable[[Any, int], bool]:
    def act(axes: Any, turn: int) -> bool:
        from matplotlib.ticker import LogLocator, MaxNLocator

        locator = axis.get_major_locator()
        remaining = max(1, 5 - turn)
        if isinstance(locator, LogLocator):
            locator.set_params(numticks=remaining + 1, subs=(1.0,))
        elif isinstance(locator, MaxNLocator):
            locator.set_params(nbins=remaining)
        else:
            return False
        return turn < 5

    return act
