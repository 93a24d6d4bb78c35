"""Metrics picked from what a script prints: JSON lines, a pattern's named groups, or lines of common tools.

One of these wins. A pattern is all that is looked for. Otherwise JSON lines are points, and lines of tools
(`tool_lines.py`) only as long as neither a JSON line nor the library has brought a point. A tool's first line
waits for a second, or ten seconds, so that a script that prints and then logs makes no double points. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hostler.records.series.points import Point
from hostler.spec.job import MetricSource

if TYPE_CHECKING:
    from hostler.records.series.metric_names import Reading
    from hostler.records.series.tool_lines import Recogniser

LARGEST = 2.0**62  # a step beyond this, or none that is a number, is not one
STEP_KEYS = ("step", "global_step", "iteration", "iter", "epoch")
PATIENCE = 10.0  # seconds that the first line of a tool waits for a script's own points


class Picker:
    """Feed it output as it comes; lines cut by a piece's end are completed by the next."""

    def __init__(self, source: MetricSource) -> None:
        self._json = source.json_lines
        self._pattern = re.compile(source.pattern) if source.pattern else None
        self._tools = _ToolPoints() if source.recognises else None
        self._rest = self._before = b""
        self._next = 0  # the step of a point that names none
        self._counted = False  # whether there was one

    @property
    def recognised(self) -> list[str]:
        """Metrics that were read from lines of tools."""
        return list(self._tools.names) if self._tools else []

    @property
    def counts_on(self) -> bool:
        """Whether steps were counted on from where it was told to."""
        return self._counted or bool(self._tools and self._tools.counted)

    def continue_from(self, step: int, rounds: int = 0) -> None:
        """Count on from this step. `rounds`: that the model has from which a boosting goes on, if known."""
        self._next = step
        if self._tools:
            self._tools.continue_from(step, rounds)

    def feed(self, data: bytes, now: float) -> list[Point]:
        if not data:
            return self._tools.due(now) if self._tools else []
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + data)
        if len(self._rest) > 1 << 20:  # not a line anybody meant as a metric
            self._rest = b""
        points = list[Point]()
        every, before = self._pattern is not None, self._before
        wants = self._tools.wants if self._tools and self._tools.on else None
        for line in lines:  # most hold neither sign, and cost no more than this
            if b":" in line or b"=" in line or every or (wants and wants(line)):
                points += self._points(line, before, now)
            before = line
        self._before = before
        return points + self._tools.due(now) if self._tools else points

    def close(self, now: float) -> list[Point]:
        return self.feed(b"\n", now) + (self._tools.close(now) if self._tools else [])

    def settle(self) -> list[Point]:
        """Points that wait, since a checkpoint is to cover them."""
        return self._tools.settled() if self._tools else []

    def stand_down(self) -> None:
        """The script logs by itself: lines of tools stop being metrics."""
        if self._tools:
            self._tools.stop()

    def _points(self, raw: bytes, before: bytes, now: float) -> list[Point]:
        line = raw.strip()
        found: dict[str, float] = {}
        if self._json and line.startswith(b"{") and line.endswith(b"}") and not line.startswith(b"{'"):
            found = _found(line)
        if not found and self._pattern:
            found = self._matched(line.decode("utf-8", "replace"))
        if not found:
            return self._tools.read(raw, before, now) if self._tools and self._tools.on else []
        key = next((k for k in STEP_KEYS if k in found), None)
        step = int(found[key]) if key and abs(found[key]) < LARGEST else self._next
        if key in ("step", "global_step"):
            found.pop(key)
        if not found:
            return []
        self._counted |= key is None
        self.stand_down()
        self._next = step + 1
        return [Point(step, now, found)]

    def _matched(self, text: str) -> dict[str, float]:
        match = self._pattern.search(text) if self._pattern else None
        found: dict[str, float] = {}
        for name, value in (match.groupdict() if match else {}).items():
            try:
                found[name] = float(value)
            except (TypeError, ValueError):
                continue
        return found


# A cheap look before a line is decoded: words that metrics are named by, signs of XGBoost and LightGBM.
LONGEST = 2000  # bytes of a line that a tool prints
SHAPES = 4096  # of lines without metrics that are remembered
_ROOTS = re.compile(  # by their first letters, which is quicker
    rb"a(?:cc|u[cpr])|b(?:leu|p[bc]|ce)|c(?:er|ost)|dice|e(?:rr|lbo|ntropy)|f(?:1|id|itness)|iou|k(?:appa|l)|loss"
    rb"|m(?:a[ep]|s[el]|rr|cc)|n(?:ll|dcg)|objective|p(?:rec|pl|erp|snr)|r(?:e(?:call|con|ward|turn)|\^?2|ouge)"
    rb"|s(?:sim|core)|top[15]|wer|xent|'s |\]\t|\tlearn"
)
_UNSIGNED = re.compile(  # lines that say something without `:` and `=`
    rb"[\s\[(|]*(?:(?:INFO|DEBUG)\]?[\s:|-]+)?"
    rb"(?i:e(?:poch|pisode|p\b|nd of)|fold|step|it(?:er|\s)|batch|round|global.step|after)"
    rb"|\s*(?:[|]|\xe2\x94[\x82\x83]|[*]\s)|[*]{3}|LOSS train\s"  # the two are bars that are drawn: │ ┃
    rb"|[A-Za-z]\w*(?:[ -][A-Za-z]\w*){0,3}\s+[-+]?\d*\.?\d(?:\S*\s*$|[\d.]*%?, [A-Za-z])"
)
_ZEROED = bytes.maketrans(b"123456789", b"000000000")
_COUNTED = re.compile(rb"[fFrRlLpP]0")  # as in f1, r2, l1, top5: such shapes are not remembered


class _ToolPoints:
    """Points of a tool's lines: of each metric one value for each step. A line without a step counts as the
    same step as the last if all it has is new there, else as the next. Programs print the same lines over and
    over: the shape of a line without metrics, all its digits being 0, is remembered."""

    def __init__(self) -> None:
        self._known: Recogniser | None = None
        self._dull: set[bytes] = set()
        self._step = -1  # the newest
        self._there: set[str] | None = None  # the metrics it has; None: the next one is wanted
        self._bar, self._offset = -1, 0  # the last count of a bar, and what bars before it came to
        self._epoch = -1.0  # that of the last line with a step and an epoch
        self._resumed = self._model = 0  # the first step after a resume, and rounds of the model
        self.counted = False  # whether steps were counted, not printed
        self._rounds: int | None = None  # rounds before the first that this attempt printed
        self._in_parts = False  # whether epochs come in parts, and so are no steps
        self._partial: Reading | None = None
        self._first: list[Point] = []  # not yet known to be wanted
        self._settled = False
        self.on = True
        self.names: dict[str, None] = {}

    def continue_from(self, step: int, rounds: int) -> None:
        self._step, self._there, self._resumed, self._model = step - 1, None, step, rounds

    def stop(self) -> None:
        self.on, self._first, self._partial = False, [], None

    def wants(self, line: bytes) -> bool:
        """Whether a line without a sign may say something: it begins with a step or a bar, is a variable with
        its value, or one of several that belong together."""
        return len(line) <= LONGEST and (_UNSIGNED.match(line) is not None or self._belongs(line))

    def _belongs(self, line: bytes) -> bool:
        """Whether a line counts with those around it: the epoch above a bar, or a part of a table."""
        if b"DataLoader" in line or line.startswith((b"Epoch ", b"***")):
            return True
        if line.startswith(b"| ") and b"/ " in line:  # of Stable-Baselines3
            return True
        return self._known is not None and self._known.in_table

    def read(self, line: bytes, before: bytes, now: float) -> list[Point]:
        shape = line.translate(_ZEROED)
        if shape in self._dull or len(line) > LONGEST:
            return []
        if not (_ROOTS.search(line.lower()) or self._belongs(line)):
            self._forget(shape)
            return []
        reading = self._recogniser.read(line, before)
        if self._recogniser.dull:
            self._forget(shape)
        return self._settle(self._taken(reading, now)) if reading else []

    @property
    def _recogniser(self) -> Recogniser:
        if self._known is None:  # its patterns take a while to compile, and few runs need them
            from hostler.records.series.tool_lines import Recogniser

            self._known = Recogniser()
        return self._known

    def _forget(self, shape: bytes) -> None:
        if len(self._dull) >= SHAPES:
            self._dull.clear()
        if not _COUNTED.search(shape):
            self._dull.add(shape)

    def due(self, now: float) -> list[Point]:
        """The first line's points, once nothing else has come for a while."""
        return self.settled() if self._first and now - self._first[0].time >= PATIENCE else []

    def settled(self) -> list[Point]:
        return self._settle([], sure=True) if self._first else []

    def close(self, now: float) -> list[Point]:
        reading, partial = self._known.close() if self._known else None, self._partial
        self._partial = None
        points = [point for one in (partial, reading) if one and self.on for point in self._placed(one, now)]
        return self._settle(points, sure=True) if self.on else []

    def _settle(self, points: list[Point], *, sure: bool = False) -> list[Point]:
        """Let points go, if it is clear by now that the script has none of its own."""
        if not self._settled:
            if not sure and points and not self._first:
                self._first = points
                return []
            if not points and not sure:
                return []
            points, self._first, self._settled = self._first + points, [], True
        for point in points:
            if not self.names.keys() >= point.values.keys():
                self.names |= dict.fromkeys(point.values)
        return points

    def _taken(self, reading: Reading, now: float) -> list[Point]:
        """A state on the way waits for the line that replaces it."""
        partial, self._partial = self._partial, None if reading.whole else reading
        other = partial is not None and partial.values.keys().isdisjoint(reading.values)
        points = self._placed(partial, now) if partial and other else []
        return points + self._placed(reading, now) if reading.whole else points

    def _placed(self, reading: Reading, now: float) -> list[Point]:
        step = self._own_step(reading)
        self.counted |= step is None or step not in (reading.step, reading.epoch)
        if step is None:
            new = self._there is not None and self._there.isdisjoint(reading.values)
            step = self._step if new else self._step + 1
        if step != self._step or self._there is None:
            self._step, self._there = step, set()
        values = {name: value for name, value in reading.values.items() if name not in self._there}
        self._there |= values.keys()
        return [Point(step, now, values)] if values else []

    def _own_step(self, reading: Reading) -> int | None:
        step, epoch = reading.step, reading.epoch
        if step is None and epoch is not None:
            self._in_parts |= epoch != int(epoch) or epoch + 1 < self._resumed
            step = None if self._in_parts else int(epoch)
        if step is None or abs(step) >= LARGEST:
            return None
        if reading.rounds:
            if self._rounds is None:
                self._rounds = 0 if step else self._model or self._resumed
            return step + self._rounds
        if not reading.restarts:
            return step if epoch is None else self._in_epoch(step, epoch, reading)
        if self._bar < 0 and step < self._resumed - 1:  # a bar of what is left to do
            self._offset = self._resumed - 1
        elif step < self._bar:
            self._offset += self._bar
        self._bar = step
        return self._offset + step

    def _in_epoch(self, step: int, epoch: float, reading: Reading) -> int:
        """The step of a line that has an epoch, too: counted on where the next epoch begins anew."""
        is_there = step == self._bar and not reading.values.keys().isdisjoint(self._there or ())
        if self._epoch < 0 and step * 2 < self._resumed:
            self._offset = self._resumed - 1
        elif self._epoch < epoch and (step < self._bar or is_there):
            self._offset += self._bar
        self._epoch, self._bar = epoch, step
        return self._offset + step


def _found(line: bytes) -> dict[str, float]:
    try:
        return _numbers(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _numbers(value: Any, prefix: str = "") -> dict[str, float]:
    """Numeric leaves of a JSON object; nested names are joined by '/'."""
    numbers: dict[str, float] = {}
    for name, item in value.items() if isinstance(value, Mapping) else ():
        if isinstance(item, Mapping):
            numbers.update(_numbers(item, f"{prefix}{name}/"))
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            try:
                numbers[_clean(prefix + name)] = float(item)
            except OverflowError:
                continue
    return numbers


def _clean(name: str) -> str:
    """JSON can spell half of a surrogate pair, which no file can hold."""
    return name.encode("utf-8", "replace").decode()
