"""Numbers of checkpoints: the newest save of an attempt always has the highest."""

from __future__ import annotations

import pytest

from hostler.attempt.saver import next_number
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.checkpoint.saved_folder import Mark


def test_one_writer_counts_on() -> None:
    assert [next_number(last) for last in (0, 1, 700, 10**12)] == [1, 2, 701, 10**12 + 1]


def test_gang_nodes_agree_on_a_mark_whatever_they_used() -> None:
    marks = [Mark(0), Mark(0, 1), Mark(1), Mark(1, 8), Mark(2), Mark(1000)]
    numbers = [next_number(0, mark) for mark in marks]
    assert numbers == [next_number(99, mark) for mark in marks] == sorted(set(numbers))
    assert numbers[0] > 0


@pytest.mark.parametrize("old", [Place(1, 700), Place(1, 70001), Place(1, 31), Place(1, 0)])
def test_a_later_attempt_beats_every_older_number(old: Place) -> None:
    """Attempts of an earlier version have numbered by `step * 100 + again`."""
    assert Place(2, next_number(0)) > old
    assert Place(1, next_number(old.step)) > old
