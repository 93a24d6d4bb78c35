"""Metrics picked from what a script prints: JSON lines, or a pattern with named groups. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hostler.records.series.points import Point
from hostler.spec.job import MetricSource

LARGEST = 2.0**62  # a step beyond this, or none that is a number, is not one
STEP_KEYS = ("step", "global_step", "iteration", "iter", "epoch")


class Picker:
    """Feed it output as it comes; lines cut by a piece's end are completed by the next."""

    def __init__(self, source: MetricSource) -> None:
        self._json = source.json_lines
        self._pattern = re.compile(source.pattern) if source.pattern else None
        self._rest = b""
        self._next = 0  # the step of a point that names none

    def continue_from(self, step: int) -> None:
        self._next = step

    def feed(self, data: bytes, now: float) -> list[Point]:
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + data)
        if len(self._rest) > 1 << 20:  # not a line anybody meant as a metric
            self._rest = b""
        return [point for line in lines for point in self._points(line, now)]

    def close(self, now: float) -> list[Point]:
        return self.feed(b"\n", now)

    def _points(self, line: bytes, now: float) -> Iterator[Point]:
        line = line.strip()
        found: dict[str, float] = {}
        if self._json and line.startswith(b"{") and line.endswith(b"}"):
            found = _found(line)
        if not found and self._pattern:
            found = self._matched(line.decode("utf-8", "replace"))
        key = next((k for k in STEP_KEYS if k in found), None)
        step = int(found[key]) if key and abs(found[key]) < LARGEST else self._next
        if key in ("step", "global_step"):
            found.pop(key)
        if found:
            self._next = step + 1
            yield Point(step, now, found)

    def _matched(self, text: str) -> dict[str, float]:
        match = self._pattern.search(text) if self._pattern else None
        found: dict[str, float] = {}
        for name, value in (match.groupdict() if match else {}).items():
            try:
                found[name] = float(value)
            except (TypeError, ValueError):
                continue
        return found


def _found(line: bytes) -> dict[str, float]:
    try:
        return _numbers(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _numbers(value: Any, prefix: str = "") -> dict[str, float]:
    """Numeric leaves of a JSON object; nested names are joined by '/'."""
    found: dict[str, float] = {}
    for name, item in value.items() if isinstance(value, Mapping) else ():
        if isinstance(item, Mapping):
            found.update(_numbers(item, f"{prefix}{name}/"))
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            try:
                found[_clean(prefix + name)] = float(item)
            except OverflowError:
                continue
    return found


def _clean(name: str) -> str:
    """JSON can spell half of a surrogate pair, which no file can hold."""
    return name.encode("utf-8", "replace").decode()
