"""Moments as people write them: `9:00`, `tomorrow 9:00`, `friday 18:00`, `2026-11-19 09:00`, `6h`. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from hostler.spec.units import duration

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LIKE = 'for example "18:00", "tomorrow 9:00", "friday 18:00", "2026-11-19 09:00" or "6h" from now'
_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?\s*(am|pm)?")


def moment(text: str, now: datetime) -> datetime:
    """The moment that is meant, by the clock of `now`; ValueError where it is none. A time of day without a
    day is the next one; a date in the past stays in the past."""
    words = text.strip().lower().replace(",", " ").split()
    if not words:
        raise ValueError("no moment is given")
    day, clock = words[0], " ".join(words[1:])
    if day in ("today", "tomorrow"):
        return _at(now + timedelta(days=day == "tomorrow"), clock or "0:00", text)
    known = [n for n, name in enumerate(DAYS) if len(day) >= 3 and name.startswith(day)]
    if known:
        found = _at(now + timedelta(days=(known[0] - now.weekday()) % 7), clock or "0:00", text)
        return found if found > now else found + timedelta(days=7)
    if _CLOCK.fullmatch(" ".join(words)) and (":" in text or words[0][-1:] == "m" or len(words) == 2):
        found = _at(now, " ".join(words), text)
        return found if found > now else found + timedelta(days=1)
    try:
        return now + timedelta(seconds=duration(text.strip().lower().removeprefix("in ")))
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"{text!r} is not a moment") from None
    return found if found.tzinfo else found.replace(tzinfo=now.tzinfo)


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
