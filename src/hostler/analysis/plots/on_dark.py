"""Colours that stand out from the ground of a plot, whatever that is. Pure.

`files/plots.js` does the same on a page that turns dark.
"""

from __future__ import annotations

ENOUGH = 4.5  # contrast, as WCAG counts it
STEP = 0.05  # of white in each mixture that is tried
DARK = 0.2  # luminance of a ground, at most
FAINT, DIM = 0.5, 0.6  # marks of less opacity stay behind others: by this factor on a dark ground
INK, PAPER = "#14181a", "#ffffff"


def legible(colour: str, ground: str) -> str:
    """The colour; on a dark ground mixed with as much white as it needs to stand out."""
    if luminance(ground) > DARK:
        return colour
    for n in range(round(1 / STEP)):
        mixed = _mixed(colour, n * STEP)
        if contrast(mixed, ground) >= ENOUGH:
            return mixed
    return PAPER


def veil(opacity: float, ground: str) -> float:
    """The opacity; less for faint marks on a dark ground, where light lines come to the front."""
    return opacity * DIM if opacity < FAINT and luminance(ground) <= DARK else opacity


def writing(ground: str) -> str:
    """Black or white, whichever is easier to read there."""
    return max(INK, PAPER, key=lambda ink: contrast(ink, ground))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [part / 255 for part in _parts(colour)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(colour: str, white: float) -> str:
    return "#" + "".join(f"{round(part + (255 - part) * white):02x}" for part in _parts(colour))


def _parts(colour: str) -> list[int]:
    return [int(colour[n : n + 2], 16) for n in (1, 3, 5)]
