"""How long whoever waits for runs rests between two looks."""

from __future__ import annotations

import math

from hostler.cli.look.wait import LOOK, REST, until_next
from hostler.cli.terminal.follow import SOON


def test_look_that_was_held_up_once_delays_no_next_one() -> None:
    assert until_next(0.1, 0.15, 0.002, folder=True) == SOON
    assert until_next(60.0, 2.0, 0.002, folder=True) == LOOK


def test_looks_that_take_long_are_rare() -> None:
    assert until_next(60.0, 2.0, 1.5, folder=True) == REST * 1.5
    assert until_next(60.0, 2.0, math.inf, folder=False) == REST * 2.0  # the first
