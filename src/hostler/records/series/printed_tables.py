"""Metrics in tables that are printed line by line. Pure.

    epoch     train_loss  valid_loss  accuracy  time       fastai, skorch: a row for each epoch
    0         0.123456    0.234567    0.812345  00:12

    | rollout/           |          |                      Stable-Baselines3: a table for each round
    |    ep_rew_mean     | 23.2     |
    | time/              |          |
    |    total_timesteps | 2048     |
    ---------------------------------

    ***** eval metrics *****                               Transformers' log_metrics
      eval_accuracy           =     0.8123

A heading holds until the next one: other lines may stand between the rows.
"""

from __future__ import annotations

import re

from hostler.records.series.metric_names import (
    FLOAT,
    NOISE,
    NUMBER,
    STEPS,
    Reading,
    clean,
    is_metric,
    number,
)

_GAP = re.compile(r"[\s|│┃,]+")
_RULE = frozenset(" |+:=─━┏┓┳┡┩╇└┘┴├┤┼╞╪╡-\t")  # signs of a line between the rows
_NAME = re.compile(r"[A-Za-z][\w.@/-]*")
_CELL = re.compile(rf"(?P<n>{NUMBER})%?|\d+:\d\d(?::\d\d)?|None|-|[\d.]+(?:ms|s|m|h)")
_MARKS = ("+", "cp")  # of skorch: a checkpoint was saved, and the heading of that column

_SECTION = re.compile(r"\|\s(?P<section>[a-z_]+/)\s*\|\s+\|")
_PAIR = re.compile(r"\|\s+(?P<name>[\w./-]+)\s*\|\s(?P<value>\S+)\s*\|")
_STEPS = ("time/total_timesteps", "time/total timesteps")

_STARS = re.compile(
    r"\*{3,} (?:train|eval|test|predict)\w* (?:metrics|results)(?: \S+)? ?\*{3,}", re.IGNORECASE
)
_ASSIGNED = re.compile(r"\s+(?P<name>\w+)\s*=\s*(?P<value>\S+)")


class ColumnTable:
    """Rows below a heading that begins with `epoch` or the like."""

    def __init__(self) -> None:
        self._names: list[str] = []

    @property
    def is_open(self) -> bool:
        return bool(self._names)

    def read(self, text: str) -> tuple[bool, Reading | None]:
        """Whether a line is of the table, and the metrics of a row."""
        cells = [cell for cell in _GAP.split(text.strip(" \t\r|│┃")) if cell not in _MARKS]
        if _is_heading(cells):
            self._names = cells
            return True, None
        return self.is_open and _is_rule(text), self._row(cells)

    def _row(self, cells: list[str]) -> Reading | None:
        if not self.is_open or len(cells) != len(self._names) or not cells[0].isdecimal():
            return None
        matches = [_CELL.fullmatch(cell) for cell in cells[1:]]
        if not all(matches):
            return None
        pairs = zip(self._names[1:], matches, strict=True)
        found = [(name, match["n"]) for name, match in pairs if match and match["n"] and _is_wanted(name)]
        if not any(is_metric(name, weak=True) and FLOAT.search(value) for name, value in found):
            return None
        return Reading(clean(found), int(cells[0]))


def _is_heading(cells: list[str]) -> bool:
    return (
        len(cells) > 1
        and cells[0].lower() in STEPS
        and all(map(_NAME.fullmatch, cells))
        and any(map(is_metric, cells[1:]))
    )


def _is_rule(text: str) -> bool:
    return len(text) > 2 and _RULE.issuperset(text.strip()) and not text.isspace()


def _is_wanted(name: str) -> bool:
    return name.lower() not in NOISE and name.lower() != "dur"


class KeyTable:
    """Names and values below each other, as Stable-Baselines3 and Transformers print them."""

    def __init__(self) -> None:
        self._section: str | None = None  # of a table that is being printed
        self._starred = False
        self._found: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        return self._section is not None or self._starred

    def read(self, text: str) -> tuple[bool, Reading | None]:
        """Whether a line is of the table, and its metrics once it is whole."""
        if self._starred:
            if match := _ASSIGNED.fullmatch(text.rstrip()):
                self._found[match["name"]] = match["value"]
                return True, None
            reading = self.close()
            self._starred = _STARS.fullmatch(text.strip()) is not None
            return self._starred, reading
        line = text.strip()
        if match := _SECTION.fullmatch(line):
            self._section = match["section"]
            return True, None
        if self._section is not None:
            if match := _PAIR.fullmatch(line):
                self._found[self._section + match["name"]] = match["value"]
                return True, None
            return _is_rule(line), self.close()
        if _STARS.fullmatch(line):
            self._starred = True
            return True, None
        return False, None

    def close(self) -> Reading | None:
        """What the table holds, though its last line may be missing."""
        found, starred = self._found, self._starred
        self._found, self._section, self._starred = {}, None, False
        step = next((number(found[name]) for name in _STEPS if name in found), None)
        pairs = [(name, value) for name, value in found.items() if not name.startswith("time/")]
        values = clean((name, value) for name, value in pairs if re.fullmatch(NUMBER, value))
        if not any(name.startswith("rollout/") or is_metric(name, weak=True) for name in values):
            return None
        if starred:
            return Reading(values, epoch=values.get("epoch"))
        return Reading(values, int(step) if step is not None else None)
