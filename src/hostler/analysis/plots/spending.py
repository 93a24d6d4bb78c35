"""Money of a sweep's launches by purpose: a bar for each launch, with the ideal in words."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.analysis.plots.chart import GREY, PALETTE, Axis, Bars, Chart, Panel, empty
from hostler.analysis.purposes import WORDS, LaunchPurposes
from hostler.spec.units import show_money

TITLE = "Cost by purpose"
COLOURS = {
    "training": PALETTE[0],
    "booting": PALETTE[1],
    "saving": PALETTE[3],
    "repeated": PALETTE[4],
    "idle": GREY,
    "tail": PALETTE[5],
}


def spending(found: Sequence[LaunchPurposes]) -> Chart:
    """Bars of what was paid for, stacked: training first. Pure."""
    if not found:
        return empty(TITLE, "no launch with a price")
    newest = list(reversed(found))  # bars are drawn from below
    labels = [purposes.name for purposes in newest]
    bars = []
    for key, words in WORDS.items():
        values = [getattr(purposes.parts, key) for purposes in newest]
        if any(values):
            bars.append(
                Bars(labels, values, words, COLOURS[key], [_text(purposes, key) for purposes in newest])
            )
    total, ideal = (sum(values) for values in zip(*map(_sums, found), strict=True))
    share = f"{100 * ideal / total:.0f} %" if total else "-"
    note = (
        f"{show_money(total)} in all; the training alone, which is the ideal, {show_money(ideal)} ({share})"
    )
    return Chart(TITLE, [Panel(bars, Axis("cost"))], note=note)


def _sums(one: LaunchPurposes) -> tuple[float, float]:
    return one.parts.total, one.parts.training


def _text(one: LaunchPurposes, key: str) -> str:
    """The money inside a bar that is wide enough for it."""
    cost = getattr(one.parts, key)
    return show_money(cost) if one.parts.total and cost >= 0.08 * one.parts.total else ""
