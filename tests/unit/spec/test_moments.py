"""Moments as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hostler.spec.moments import moment

NOW = datetime(2026, 11, 18, 14, 30, tzinfo=timezone(timedelta(hours=1)))  # a Wednesday


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("18:00", "2026-11-18 18:00"),
        ("9:00", "2026-11-19 09:00"),  # today's has passed
        ("6pm", "2026-11-18 18:00"),
        ("12 am", "2026-11-19 00:00"),
        ("tomorrow 9:00", "2026-11-19 09:00"),
        ("tomorrow 9", "2026-11-19 09:00"),
        ("Today 9:00", "2026-11-18 09:00"),  # it has passed, and stays so
        ("friday 18:00", "2026-11-20 18:00"),
        ("wed 9:00", "2026-11-25 09:00"),
        ("2026-11-19 09:00", "2026-11-19 09:00"),
        ("2026-11-19T09:00", "2026-11-19 09:00"),
        ("6h", "2026-11-18 20:30"),
        ("in 1h30m", "2026-11-18 16:00"),
    ],
)
def test_moment_is_what_a_person_means(text: str, meant: str) -> None:
    assert moment(text, NOW).strftime("%Y-%m-%d %H:%M") == meant


def test_moment_of_another_zone_keeps_its_zone() -> None:
    assert moment("2026-11-19T09:00Z", NOW) == datetime(2026, 11, 19, 9, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "tomorrow 9:75", "13pm", "2026-13-01", "friday noonish"]
)
def test_words_that_are_no_moment_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        moment(text, NOW)
