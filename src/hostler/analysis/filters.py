"""Filters rows by conditions on columns.

0.1, "adam"           this value
[0.1, 0.2]            one of these (also a set, a tuple, a range, an array)
slice(0.1, 0.5)       from … to …, both included; None: no bound
re.compile("^res")    text in which the pattern is found
a callable            whatever it says True to
isnt(any of these)    the others
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from hostler.analysis.names import TIMES
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.spec.scalars import parse_value

NONE = {"none", "nan"}  # on a command line: no value

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class isnt:
    """The runs that this condition does not hold for; those without a value among them."""

    condition: Any


def test(condition: Any) -> Test:
    """The condition as a function of a value."""
    if isinstance(condition, isnt):
        inner = test(condition.condition)
        return lambda value: not inner(value)
    if isinstance(condition, re.Pattern):
        return lambda value: not _absent(value) and condition.search(str(value)) is not None
    if isinstance(condition, slice):
        return lambda value: _between(value, condition.start, condition.stop)
    if callable(condition):
        return lambda value: bool(condition(value))
    if isinstance(condition, Iterable) and not isinstance(condition, (str, bytes, Mapping)):
        several = list(condition)
        return lambda value: any(_same(value, one) for one in several)
    return lambda value: _same(value, condition)


def keep(columns: Mapping[str, Sequence[Any]], where: Mapping[str, Any], count: int) -> list[int]:
    """The numbers of the rows for which all conditions hold."""
    rows: Iterable[int] = range(count)
    for name, condition in where.items():
        if name not in columns:
            raise UsageError(
                f"no column named {name!r}", hint=did_you_mean(name, columns, f"choose from: {_few(columns)}")
            )
        holds, column = test(in_moments(condition) if name in TIMES else condition), columns[name]
        column = [_moment(cell) for cell in column] if name in TIMES else column
        rows = [n for n in rows if holds(column[n])]
    return list(rows)


def in_moments(condition: Any) -> Any:
    """The condition on a time with datetimes in place of text, of seconds since 1970, and of naive ones."""
    if isinstance(condition, isnt):
        return isnt(in_moments(condition.condition))
    if isinstance(condition, slice):
        return slice(_moment(condition.start), _moment(condition.stop))
    if isinstance(condition, re.Pattern) or callable(condition):
        return condition
    if isinstance(condition, Iterable) and not isinstance(condition, str):
        return [_moment(one) for one in condition]
    return _moment(condition)


def _moment(value: Any) -> Any:
    """A datetime in UTC; None and NaN stay what they are."""
    value = value.item() if hasattr(value, "dtype") else value  # of numpy
    if _absent(value):
        return None
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, timezone.utc)
        found = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
        return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
    except (ValueError, OverflowError, OSError, AttributeError):
        raise UsageError(
            f"{value!r} is not a time", hint="for example 2026-11-16 or 2026-11-16T10:30"
        ) from None


_WORD = re.compile(r"(?P<name>.+?)(?P<how>!=|!~|=|~)(?P<what>.*)", re.DOTALL)


def parse(word: str) -> tuple[str, Any]:
    """lr=0.1  lr=0.1,0.2  lr=0.1..0.5  model~^res  and each with ! for the others."""
    match = _WORD.fullmatch(word)
    if not match:
        raise UsageError(
            f"{word!r} is not a condition", hint="for example lr=0.1  lr=0.01..0.1  model~^res  optim!=sgd"
        )
    name, how, what = match.groups()
    condition = _pattern(what) if "~" in how else _time(what) if name in TIMES else _value(what)
    return name, isnt(condition) if how[0] == "!" else condition


def parse_all(words: Iterable[str]) -> dict[str, Test]:
    """A condition for each column that is named; of several on one column all must hold."""
    found: dict[str, list[Test]] = {}
    for name, condition in map(parse, words):
        found.setdefault(name, []).append(test(condition))
    return {name: _every(tests) for name, tests in found.items()}


def _every(tests: Sequence[Test]) -> Test:
    return lambda value: all(holds(value) for holds in tests)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None


def _value(text: str) -> Any:
    low, dots, high = text.partition("..")
    ends = [parse_value(end) if end else None for end in (low, high)]
    if dots and any(end is not None for end in ends) and all(map(_bounds, ends)):  # not ../data
        return slice(*ends)
    found = [parse_value(word) for word in text.split(",")]
    return [*found, None] if set(text.lower().split(",")) & NONE else found


def _time(text: str) -> Any:
    low, dots, high = text.partition("..")
    if dots:
        return slice(_moment(_number(low)), _moment(_number(high)))
    return [None if word.lower() in NONE else _moment(_number(word)) for word in text.split(",")]


def _number(text: str) -> Any:
    """Seconds since 1970, if it is that; else the text. None if it is empty."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _same(value: Any, wanted: Any) -> bool:
    if _absent(wanted):
        return _absent(value)
    if isinstance(value, bool) is not isinstance(wanted, bool):
        return False
    try:
        return bool(value == wanted)
    except (TypeError, ValueError):  # an array
        return False


def _between(value: Any, low: Any, high: Any) -> bool:
    try:
        return bool(not _absent(value) and (low is None or low <= value) and (high is None or value <= high))
    except TypeError:  # text among numbers
        return False


def _bounds(end: Any) -> bool:
    return end is None or (isinstance(end, (int, float)) and not isinstance(end, bool))


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _few(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:20]) + (" …" if len(every) > 20 else "")
