"""Colour where a terminal shows it and NO_COLOR allows it; columns that line up everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from hostler import env, terminal

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


def columns(table: Iterable[Sequence[str]], indent: str = "  ", gap: str = "  ") -> list[str]:
    """Each row as one line, cells under each other."""
    rows = [list(cells) for cells in table]
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = gap.join(f"{{:<{width}}}" for width in widths)
    return [(indent + form.format(*cells)).rstrip() for cells in rows]
