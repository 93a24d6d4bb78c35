"""Text on a terminal: a table cut to its width and redrawn in place, colour, columns that line up.

What is measured is cells of the screen, of which some letters take two. Whatever is not printable becomes a
sign or an escape: names and parameters are other people's, and a terminal obeys what is written to it.
"""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Container, Iterable, Sequence
from types import TracebackType
from typing import Any, TextIO

import click

from hostler import env, terminal
from hostler.terminal import own, sign

GAP = "  "
LEAST_CELL = 16  # columns that a broken text needs
CUT = "…"
UP_AND_ERASE = "\x1b[1A\x1b[2K"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor


def size() -> os.terminal_size:
    """Columns and lines of the terminal."""
    import shutil  # with every kind of archive; a pipe is as wide as it likes

    return shutil.get_terminal_size()


def width(text: str) -> int:
    """Cells that a text takes on the screen."""
    return sum(map(_cells, text))


def printable(text: str) -> str:
    """The text with a sign or an escape (`\\udcff`) in place of every letter that cannot be shown."""
    return text if text.isprintable() else "".join(one if one.isprintable() else sign(one) for one in text)


def shorten(text: str, room: int) -> str:
    """As much of it as fits, with an ellipsis where something is missing."""
    if width(text) <= room:
        return text
    kept, used = "", 0
    for letter in text:
        used += _cells(letter)
        if used > room - 1:
            break
        kept += letter
    return kept + CUT if room > 0 else ""


def middle(text: str, room: int) -> str:
    """Both ends of a text that does not fit, an ellipsis between them: long names differ at their ends."""
    if width(text) <= room or room < 3:
        return shorten(text, room)
    tail, used = "", 0
    for letter in reversed(text):
        used += _cells(letter)
        if used > (room - 1) // 2:
            break
        tail = letter + tail
    return shorten(text, room - width(tail)) + tail


def wrapped(text: str, room: int, indent: str) -> list[str]:
    """The text broken at its spaces, later lines indented; a word that is too long loses its middle."""
    shown = [text[: len(text) - len(text.lstrip())]]
    for word in text.split():
        longer = f"{shown[-1]} {word}" if shown[-1].strip() else shown[-1] + word
        if width(longer) > room and shown[-1].strip():
            longer = indent + word
            shown.append("")
        shown[-1] = longer if width(longer) <= room else middle(longer, room)
    return shown


def hanging(text: str, room: int, indent: str = "    ", first: int = 0) -> str:
    """The text broken at its spaces, later lines indented; nothing of it is cut. `first`: columns that stand
    before it."""
    shown = textwrap.fill(
        text,
        room,
        initial_indent=" " * first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return shown[first:]


def fitted(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths of columns that fit: the widest give way first, none below its least until all are there."""
    widths = list(wanted)
    for floor in (least, [1] * len(widths)):
        while (over := sum(widths) + len(GAP) * (len(widths) - 1) - room) > 0:
            loose = [n for n in range(len(widths)) if widths[n] > floor[n]]
            if not loose:
                break
            widest = max(loose, key=lambda n: widths[n])
            next_one = max((widths[n] for n in loose if n != widest), default=0)
            widths[widest] = max(floor[widest], min(widths[widest] - 1, max(next_one, widths[widest] - over)))
    return widths


def lines(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    least: Sequence[int],
    room: int,
    paint: Callable[[int, int, str], str],
    names: Container[int] = (),
) -> list[str]:
    """The table; `paint` colours the text of a row (from -1, the head, on) and column. `names`: columns that
    keep their ends where they are cut."""
    clean = [[printable(cell) for cell in cells] for cells in (head, *rows)]
    wanted = [max(map(width, column)) for column in zip(*clean, strict=True)]
    widths = fitted(wanted, [min(a, b) for a, b in zip(least, wanted, strict=True)], room)
    cut = [
        [(middle if n in names else shorten)(cell, widths[n]) for n, cell in enumerate(cells)]
        for cells in clean
    ]
    return [_line(n - 1, cells, widths, paint) for n, cells in enumerate(cut)]


class Live:
    """Lines that stand where the last ones stood, until the block ends.

    What is printed to the terminal meanwhile stands above them.
    """

    def __init__(self) -> None:
        self._stream, self._errors = sys.stdout, sys.stderr
        self._shown: Sequence[str] = ()

    def show(self, drawn: Sequence[str], above: str = "") -> None:
        whole = above + "".join(f"{line}\n" for line in drawn)
        self._stream.write(own(UP_AND_ERASE) * len(self._shown) + whole)
        self._stream.flush()
        self._shown = drawn

    def print(self, text: str) -> None:
        """Whole lines, above what is shown."""
        self.show(self._shown, above=text)

    def __enter__(self) -> Live:
        self._stream.write(own(HIDE))
        sys.stdout = _Above(self, self._stream)
        if self._errors.isatty():
            sys.stderr = _Above(self, self._errors)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _Above):
                stream.finish()
        sys.stdout, sys.stderr = self._stream, self._errors
        self._stream.write(own(SHOW))
        self._stream.flush()


class _Above:
    """A stream whose lines are printed above what is shown; in everything else the stream itself."""

    def __init__(self, live: Live, stream: TextIO) -> None:
        self._live, self.below = live, stream
        self._held = ""

    def write(self, text: str) -> int:
        self._held += text
        whole, newline, self._held = self._held.rpartition("\n")
        if newline:
            self._live.print(whole + newline)
        return len(text)

    def finish(self) -> None:
        """The beginning of a line that nobody ended."""
        if self._held:
            self.write("\n")

    def flush(self) -> None:
        self.below.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


def _line(
    row: int, short: Sequence[str], widths: Sequence[int], paint: Callable[[int, int, str], str]
) -> str:
    short = [*short[:-1], short[-1].rstrip()] if short else short
    gaps = [GAP + " " * (room - width(cell)) for cell, room in zip(short, widths, strict=True)]
    last = max((n for n, cell in enumerate(short) if cell), default=-1)
    painted = [
        paint(row, n, cell) + (gaps[n] if n < last else "") for n, cell in enumerate(short[: last + 1])
    ]
    return "".join(painted)


def _cells(letter: str) -> int:
    if letter.isascii():
        return 1
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


# Colour where a terminal shows it and NO_COLOR allows it; columns that line up everywhere.


COLOURS = {
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "diverged": "red",
    "paused": "yellow",
    "stopped": "yellow",
    "pruned": "blue",
    "queued": "white",
    "lost": "red",
    "unreadable": "red",
}


def paint(text: str, colour: str = "", *, bold: bool = False) -> str:
    """The colour is taken away again where it is not written to a terminal."""
    if env.no_color():
        return text
    begin, end = click.style("\0", fg=colour or None, bold=bold or None).split("\0")
    return terminal.own(begin) + text + terminal.own(end)


def state(word: str) -> str:
    return paint(word, COLOURS.get(word.split(":")[0].split("?")[0], ""))


def title(text: str) -> str:
    return paint(text, bold=True)


def columns(table: Iterable[Sequence[str]], indent: str = "  ", gap: str = "  ", room: int = 0) -> list[str]:
    """Each row as one line, cells under each other. `room`: where a line is longer, its last cell goes on
    below itself."""
    rows = [list(cells) for cells in table]
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(indent) + sum(widths[:-1]) + len(gap) * (len(widths) - 1)
    if room - left > LEAST_CELL:
        rows = [part for cells in rows for part in _hung(cells, room - left)]
    form = gap.join(f"{{:<{width}}}" for width in widths)
    return [(indent + form.format(*cells)).rstrip() for cells in rows]


def _hung(cells: list[str], room: int) -> list[list[str]]:
    if width(cells[-1]) <= room:
        return [cells]
    first, *more = wrapped(cells[-1], room, "")
    return [[*cells[:-1], first], *([""] * (len(cells) - 1) + [line] for line in more)]
