"""Moments as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hostler.cli.run.moments import moment

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
        ("2026-11-19 9:00", "2026-11-19 09:00"),
        ("2026-11-19 at 6 pm", "2026-11-19 18:00"),
        ("6h", "2026-11-18 20:30"),
        ("in 1h30m", "2026-11-18 16:00"),
        ("in 6 hours", "2026-11-18 20:30"),
        ("1 hour and 30 mins", "2026-11-18 16:00"),
        ("2 days", "2026-11-20 14:30"),
        ("tomorrow at noon", "2026-11-19 12:00"),
        ("midnight", "2026-11-19 00:00"),
        ("Friday, at 9 am", "2026-11-20 09:00"),
    ],
)
def test_moment_is_what_a_person_means(text: str, meant: str) -> None:
    assert moment(text, NOW).strftime("%Y-%m-%d %H:%M") == meant


def test_moment_of_another_zone_keeps_its_zone() -> None:
    assert moment("2026-11-19T09:00Z", NOW) == datetime(2026, 11, 19, 9, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("18:00 UTC", "2026-11-18 18:00"),
        ("13:15 gmt", "2026-11-19 13:15"),  # there it is half past one
        ("2026-11-19 09:00 +02:00", "2026-11-19 07:00"),
        ("2026-11-19 9:00 UTC", "2026-11-19 09:00"),
        ("tomorrow 9:00 UTC-8", "2026-11-19 17:00"),
        ("friday 9:00 America/New_York", "2026-11-20 14:00"),
        ("19.11.", ""),
        ("18:00 Mars/Olympus", ""),
        ("18:00 +99", ""),
    ],
)
def test_clock_of_the_zone_that_is_named_counts(text: str, utc: str) -> None:
    if not utc:
        with pytest.raises(ValueError, match="is not a moment"):
            moment(text, NOW)
        return
    assert moment(text, NOW).astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M") == utc


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "tomorrow 9:75", "13pm", "2026-13-01", "2026-11-19 25:00", "friday noonish"]
)
def test_words_that_are_no_moment_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        moment(text, NOW)
