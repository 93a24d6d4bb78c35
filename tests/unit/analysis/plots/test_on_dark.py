"""Colours of plots on a light and on a dark ground."""

from __future__ import annotations

from hostler.analysis.plots.chart import PALETTE, STATES
from hostler.analysis.plots.on_dark import contrast, legible, veil, writing

DARK, LIGHT = "#14181a", "#ffffff"


def test_every_colour_stands_out_from_a_dark_ground() -> None:
    for colour in [*PALETTE, *STATES.values()]:
        assert contrast(legible(colour, DARK), DARK) >= 4.5, colour


def test_colours_stay_as_they_are_on_a_light_ground() -> None:
    assert [legible(colour, LIGHT) for colour in PALETTE] == list(PALETTE)


def test_numbers_in_bars_are_black_or_white_by_contrast() -> None:
    assert (writing("#b59a2b"), writing("#c23b32")) == ("#14181a", "#ffffff")
    for colour in STATES.values():
        assert contrast(writing(colour), colour) >= 4.2, colour


def test_faint_marks_stay_behind_on_a_dark_ground() -> None:
    assert veil(0.4, "#14181a") < 0.3
    assert veil(0.4, "#ffffff") == 0.4
    assert veil(0.85, "#14181a") == 0.85
