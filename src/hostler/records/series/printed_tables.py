"""Metrics in tables that are printed line by line. Pure.

    epoch     train_loss  valid_loss  accuracy  time       fastai, skorch: a row for each epoch
    0         0.123456    0.234567    0.812345  00:12

    ┃ epoch ┃ train loss ┃ val acc ┃                       rich: lines are drawn between the columns
    │ 1     │ 0.5321     │ 0.812   │

      Iter       Train Loss   Remaining Time               scikit-learn's boosting
         1           1.2613            1.20s

          Epoch    GPU_mem   box_loss  Instances       Size           Ultralytics
          1/100      2.61G      1.153         81        640: 100%|██████████| 8/8
                     Class     Images  Instances      Box(P          R      mAP50  mAP50-95)
                       all        128        929      0.671      0.521      0.605       0.45

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
_BAR = re.compile(r"[|│┃]")
_WIDE_GAP = re.compile(r"\s{2,}|\t")
_RULE = frozenset(" |+:=─━┏┓┳┡┩╇└┘┴├┤┼╞╪╡-\t")  # signs of a line between the rows
_NAME = re.compile(r"[A-Za-z][\w.@/-]*")
_CELL = re.compile(rf"(?P<n>{NUMBER})%?|\d+:\d\d(?::\d\d)?|None|-|[\d.]+(?:ms|s|m|h|[KMG](?:i?B)?)")
_BEGINNING = re.compile(r"[\s|│┃]*(?:([A-Za-z_]+)[\s|│┃,]+[A-Za-z_]|\d)")  # of a heading, or of a row
_FIRST = re.compile(r"(\d+)(?:/\d+)?")  # of a row: 3 or 3/100
_PROGRESS = re.compile(r":?\s{1,20}(\d{1,3})%[|\s]")  # behind a row that is drawn over and over
_DETECTED = re.compile(r"\s*Class\s+Images\s+Instances\s+Box\(P\s+R\s+mAP50\s+mAP50-95\).*")
_ALL = re.compile(rf"\s*all\s+\d+\s+\d+((?:\s+(?:{NUMBER})){{4}})\s*")
_OF_BOXES = ("precision", "recall", "mAP50", "mAP50-95")
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
        self._headings: list[list[str]] = []  # the ways in which the heading may be cut into names
        self._step: int | None = None  # of the last row
        self._of_boxes = False  # whether a row of all classes may follow

    @property
    def is_open(self) -> bool:
        return bool(self._headings)

    def read(self, text: str) -> tuple[bool, Reading | None]:
        """Whether a line is of the table, and the metrics of a row."""
        line, begins = text.strip(), _BEGINNING.match(text)
        if begins and begins[1] and begins[1].lower() in STEPS:
            headings = [names for cells in _cuts(line) if _is_heading(names := _joined(cells))]
            if headings:
                self._headings, self._step = headings, None
                return True, None
        if self.is_open and _DETECTED.fullmatch(line):
            self._of_boxes = True
            return True, None
        if self._of_boxes and (match := _ALL.fullmatch(line)):
            self._of_boxes = False
            return True, Reading(clean(zip(_OF_BOXES, match[1].split(), strict=True)), self._step)
        is_row = self.is_open and begins is not None and begins[1] is None
        return self.is_open and _is_rule(text), self._row(line) if is_row else None

    def _row(self, line: str) -> Reading | None:
        drawn = _PROGRESS.search(line)
        for cells in _cuts(line[: drawn.start()] if drawn else line):
            first = _FIRST.fullmatch(cells[0])
            names = next((names for names in self._headings if len(names) == len(cells)), None)
            matches = [_CELL.fullmatch(cell) for cell in cells[1:]]
            if not first or names is None or not all(matches):
                continue
            pairs = zip(names[1:], matches, strict=True)
            found = [(name, match["n"]) for name, match in pairs if match and match["n"] and _is_wanted(name)]
            if any(is_metric(name, weak=True) and FLOAT.search(value) for name, value in found):
                self._step = int(first[1])
                return Reading(clean(found), self._step, whole=not drawn or drawn[1] == "100")
        return None


def _cuts(line: str) -> list[list[str]]:
    """The ways in which a line may be cut into cells: at every gap, at its bars, at its wide gaps."""
    inside = line.strip("|│┃ \t\r")
    every = [cell for cell in _GAP.split(inside) if cell not in _MARKS]
    rest = _BAR if _BAR.search(inside) else _WIDE_GAP
    return [every, [cell.strip() for cell in rest.split(inside)]]


def _joined(cells: list[str]) -> list[str]:
    """Names of one word each: `train loss` as plain lines have it."""
    return ["_".join(cell.lower().split()) if " " in cell else cell for cell in cells]


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
    return name.lower() not in {*NOISE, "dur", "instances", "size", "gpu_mem"}


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
