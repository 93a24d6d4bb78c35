"""Moments as people write them: `9:00`, `tomorrow at noon`, `18:00 UTC`, `2026-11-19 09:00`, `6h`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from hostler.spec.units import duration

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LIKE = 'for example "18:00", "tomorrow 9:00", "friday 18:00 UTC", "2026-11-19 09:00" or "6h" from now'
_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?\s*(am|pm)?")
_HOURS = {"noon": "12:00", "midnight": "0:00"}
_OFFSET = re.compile(r"(?:utc|gmt)?([-+])(\d{1,2})(?::?(\d\d))?")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(h|m|d)(?:ours?|rs?|inutes?|ins?|ays?)\b\s*(?:and\b\s*)?")


def moment(text: str, now: datetime) -> datetime:
    """The moment that is meant, by the clock of `now` or of the zone that is named last; ValueError where it
    is none. A time of day without a day is the next one; a date in the past stays in the past."""
    given = text.strip().replace(",", " ").split()
    zone = _zone(given[-1]) if len(given) > 1 else None
    if zone is not None:
        return _meant(given[:-1], now.astimezone(zone), text)
    return _meant(given, now, text)


def _meant(given: Sequence[str], now: datetime, text: str) -> datetime:
    words = [_HOURS.get(word, word) for word in map(str.lower, given) if word != "at"]
    if not words:
        raise ValueError("no moment is given")
    day, clock = words[0], " ".join(words[1:])
    if day in ("today", "tomorrow"):
        return _at(now + timedelta(days=day == "tomorrow"), clock or "0:00", text)
    known = [n for n, name in enumerate(DAYS) if len(day) >= 3 and name.startswith(day)]
    if known:
        found = _at(now + timedelta(days=(known[0] - now.weekday()) % 7), clock or "0:00", text)
        return found if found > now else found + timedelta(days=7)
    clock = " ".join(words)
    if _CLOCK.fullmatch(clock) and (":" in clock or words[0][-1:] == "m" or len(words) == 2):
        found = _at(now, clock, text)
        return found if found > now else found + timedelta(days=1)
    try:
        return now + timedelta(seconds=duration(_SPAN.sub(r"\1\2", clock.removeprefix("in "))))
    except (ValueError, OverflowError):
        pass
    try:
        if len(words) > 1 and _CLOCK.fullmatch(clock.removeprefix(day).strip()):  # also 9:00 and 9 am
            found = _at(datetime.fromisoformat(day), clock.removeprefix(day).strip(), text)
        else:
            found = datetime.fromisoformat(clock.upper().replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"{text!r} is not a moment") from None
    return found if found.tzinfo else found.replace(tzinfo=now.tzinfo)


def _zone(word: str) -> tzinfo | None:
    """`UTC`, `+02:00`, `UTC+2`, `CET`, `Europe/Berlin`; None for what is no zone."""
    if word.upper() in ("Z", "UTC", "GMT"):
        return timezone.utc
    if offset := _OFFSET.fullmatch(word.lower()):
        minutes = 60 * int(offset[2]) + int(offset[3] or 0)
        return (
            timezone((-1 if offset[1] == "-" else 1) * timedelta(minutes=minutes)) if minutes < 1440 else None
        )
    if not re.fullmatch(r"[A-Z][A-Za-z_]+(/[A-Za-z_+-]+)+|[A-Z]{3,4}", word):
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # only for a zone's name

    try:
        return ZoneInfo(word)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _at(day: datetime, clock: str, text: str) -> datetime:
    match = _CLOCK.fullmatch(clock)
    if not match:
        raise ValueError(f"{text!r} is not a moment")
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        if not 1 <= hour <= 12:
            raise ValueError(f"{text!r} is not a moment")
        hour = hour % 12 + 12 * (match[3] == "pm")
    if hour > 23 or minute > 59:
        raise ValueError(f"{text!r} is not a moment")
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)
