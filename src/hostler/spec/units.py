"""Durations, sizes, money, counts and results: text to numbers and back.

Seconds are floats, bytes are ints. `show_…(x, exact=True)` is read back as exactly x; without it the
text is short, for people: terminal, report and plots show a number by this one rule. Errors are ValueErrors
of one line: the caller knows the file and the key.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION_WORDS = {
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    "ms": 0.001,
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)\s*")
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
_LETTERS = "KMGTPE"
_DIGITS = 4  # significant ones of a result
_SMALL, _LARGE = -2, 6  # powers of ten between which a result has no exponent
_WHOLE = 1e9  # whole numbers below it are shown whole
_LONGEST = 1e11  # three thousand years


def _decimal(text: str) -> Decimal:
    from decimal import Decimal  # most commands read no size

    return Decimal(text)


def duration(value: object) -> float:
    """Seconds of 90, '90s', '30m', '6h', '1d' or '1h30m'; a plain number is seconds."""
    seconds = _number(value)
    if seconds is None and isinstance(value, str):
        seconds = _sum_of_parts(value.lower())
    if seconds is None or not 0 <= seconds <= _LONGEST:
        raise ValueError(f"{value!r} is not a duration (like 90s, 30m, 6h, 1d)")
    return seconds


def size(value: object) -> int:
    """Bytes of 1024, '16GB' (powers of 1000) or '512MiB' (powers of 1024); a plain number is bytes."""
    count = _number(value)
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        scale = _scale(match[2].upper())
        count = int(_decimal(match[1]) * scale) if scale else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if count is None or not 0 <= count < math.inf:
        raise ValueError(f"{value!r} is not a size (like 16GB, 512MiB)")
    return int(count)


def show_money(value: float | None) -> str:
    """To the cent; of smaller amounts two digits, down to a millionth. '-' for what is not known."""
    if value is None:
        return "-"
    if abs(value) >= 0.1 or abs(value) < 1e-6:
        return f"{value:.2f}"
    return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")


def show_number(value: float) -> str:
    """'0.9683', '1.63e-3', '128': four significant digits, an exponent below 0.01 and above a million."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < _WHOLE:
        return str(int(value))
    digits, _, power = f"{value:.{_DIGITS - 1}e}".partition("e")
    if not _SMALL <= int(power) < _LARGE:
        return f"{_trimmed(digits)}e{int(power)}"
    return _trimmed(f"{value:.{max(0, _DIGITS - 1 - int(power))}f}")


def show_duration(seconds: float, *, exact: bool = False) -> str:
    """'1d 02h', '1h 30m', '1m 05s', '3.2s': the largest part and the next, or all of them if exact."""
    if seconds < 0:
        return "-" + show_duration(-seconds, exact=exact)
    if not exact and 0 < seconds < 10:
        return f"{math.floor(seconds * 10) / 10:g}s" if seconds >= 1 else f"{math.floor(seconds * 1000):d}ms"
    if not exact:
        first, second = _two_parts(int(seconds))
        return first if second.startswith("00") else f"{first} {second}".rstrip()
    minutes, rest = divmod(seconds, 60)
    parts = _whole_parts(int(minutes) * 60)
    if rest:
        parts.append(
            f"{_decimal(repr(float(rest))):f}".rstrip("0").rstrip(".") + "s" if rest % 1 else f"{int(rest)}s"
        )
    return "".join(parts) or "0s"


def show_elapsed(seconds: float) -> str:
    """A duration in a column: '2m 00s' under '12m 05s', so that equal parts stand under each other."""
    return show_duration(seconds) if seconds < 60 else " ".join(_two_parts(int(seconds)))


def show_ago(seconds: float) -> str:
    """'12s ago', '5m ago', '3d ago': how long ago something was, in its largest part."""
    return "just now" if seconds < 1 else f"{_two_parts(int(seconds))[0]} ago"


def show_size(count: int, *, exact: bool = False) -> str:
    """'16GB', '1.5GB', '999B': three figures at most, or every byte if exact."""
    if count < 0:
        return "-" + show_size(-count, exact=exact)
    if exact:
        return _exact_size(count)
    if count < 1000:
        return f"{count}B"
    for power, letter in enumerate(_LETTERS, start=1):
        shown = count / 1000**power
        shown = round(shown, 1 if shown < 10 else 0)
        if shown < 1000 or letter == _LETTERS[-1]:
            break
    return f"{shown:.1f}".removesuffix(".0") + f"{letter}B"


def counted(number: float, noun: str) -> str:
    """'1 run', '1,200 runs', '0.5 CPUs': a number with its noun."""
    shown = f"{int(number):,}" if number == int(number) else f"{number:g}"
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def _number(value: object) -> float | None:
    """A plain number, also as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _sum_of_parts(text: str) -> float | None:
    total, at = 0.0, 0
    while match := _PART.match(text, at):
        if match[2] not in _DURATION_WORDS:
            return None
        total += float(match[1]) * _DURATION_WORDS[match[2]]
        at = match.end()
    return total if at == len(text) and at else None


def _two_parts(seconds: int) -> tuple[str, str]:
    """The largest part of a duration and the next, of two digits: ('1h', '05m'); seconds have no next."""
    units = list(_SECONDS)
    largest = next((unit for unit in units if seconds >= _SECONDS[unit]), units[-1])
    count, rest = divmod(seconds, _SECONDS[largest])
    if largest == units[-1]:
        return f"{count}{largest}", ""
    smaller = units[units.index(largest) + 1]
    return f"{count}{largest}", f"{rest // _SECONDS[smaller]:02d}{smaller}"


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _whole_parts(seconds: int) -> list[str]:
    """[] for 0; never a part of 0 between two others' places: '1d5s' is ['1d', '5s']."""
    parts = []
    for unit, scale in _SECONDS.items():
        count, seconds = divmod(seconds, scale)
        if count:
            parts.append(f"{count}{unit}")
    return parts


def _scale(unit: str) -> int | None:
    """G, GB and gb are powers of 1000; Gi and GiB are powers of 1024."""
    letters = unit.removesuffix("B")
    binary = letters.endswith("I")
    letter = letters.removesuffix("I")
    if letter == "":
        return None if binary else 1
    if len(letter) != 1 or letter not in _LETTERS:
        return None
    return int((1024 if binary else 1000) ** (_LETTERS.index(letter) + 1))


def _exact_size(count: int) -> str:
    """The shortest whole number of one unit; powers of 1000 first among equals."""
    units = [(1, "B")]
    for power, letter in enumerate(_LETTERS, start=1):
        units += [(1000**power, f"{letter}B"), (1024**power, f"{letter}iB")]
    whole = [f"{count // scale}{unit}" for scale, unit in units if count % scale == 0]
    return min(whole, key=lambda text: len(text.rstrip("KMGTPEiB"))) if count else "0B"
