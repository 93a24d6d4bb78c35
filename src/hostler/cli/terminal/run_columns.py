"""Columns of a table of runs: which there are, what stands in them, and which a narrow terminal leaves out.

A parameter has a column if it varies, a machine's name if there are several, a metric unless it only repeats
the step. Pure: rows in, texts out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hostler.cli.terminal import output
from hostler.cli.terminal.screen import GAP, middle, printable, width
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.params import flatten
from hostler.spec.states import COUNTED
from hostler.spec.units import show_elapsed, show_number

if TYPE_CHECKING:
    from hostler.records.rows import Row

NAME, STATE, STEP, TIME, LEFT, HOST = "NAME", "STATE", "STEP", "TIME", "LEFT", "HOST"
ALL = "all"  # of --columns
STAR = "★"
METRICS = 3  # that are shown unasked
STEPS_AGAIN = ("epoch", "step", "global_step", "iteration")
LONGEST = 28  # cells of a text


@dataclass(frozen=True)
class Column:
    """A column; `spare` orders what a narrow terminal leaves out: the highest first, 0 never."""

    title: str
    values: tuple[Any, ...]
    cells: tuple[str, ...]
    spare: float = 0.0
    is_time: bool = False

    @property
    def is_numeric(self) -> bool:
        known = [value for value in self.values if value is not None]
        return bool(known) and all(_is_number(value) for value in known)

    @property
    def width(self) -> int:
        return max(map(width, (self.head, *self.aligned)))

    @property
    def aligned(self) -> tuple[str, ...]:
        """The cells, numbers with their decimal points under each other and the title's end above them."""
        if not self.is_numeric:
            return self.cells
        cells = self.cells if self.is_time else at_point(self.cells)
        room = max(map(width, (_cut(self.title), *cells)))
        return tuple(cell and " " * (room - width(cell)) + cell for cell in cells)

    @property
    def head(self) -> str:
        shown = _cut(self.title)
        return shown.rjust(max(map(width, self.aligned), default=0)) if self.is_numeric else shown


@dataclass(frozen=True)
class Times:
    """The time that a run has taken and has left, in seconds, where that is known."""

    taken: float | None = None
    left: float | None = None


def chosen(
    rows: Sequence[Row], states: Sequence[str], times: Sequence[Times], asked: str = ""
) -> list[Column]:
    """The columns of a table of these rows: those that tell them apart, or those that are asked for."""
    params, metrics = _params(rows), _metrics(rows)
    known = [*_facts(rows, states, times), *params, *metrics]
    if asked == ALL:
        return [known[0], known[1], *params, *metrics, *known[2:6]]
    if asked:
        first, words = known[0], [word for word in asked.split(",") if word.strip()]
        columns = [column for word in words if (column := find(known, word))]
        return [first, *(c for c in columns if c is not first)]
    facts = [column for column in known[2:6] if any(column.cells)]
    hosts = {row.host for row in rows if row.host}
    facts = [column for column in facts if column.title != HOST or len(hosts) > 1]
    told = [column for column in metrics if not _repeats(column, known, params)]
    return [known[0], known[1], *filter(_varies, params), *told[:METRICS], *facts]


def find(columns: Sequence[Column], word: str) -> Column | None:
    """The column that a word means: a parameter or metric first, then a fact in any case of letters."""
    word = word.strip()
    exact = next((column for column in columns if column.title == word), None)
    return exact or next((column for column in columns if column.title == word.upper()), None)


def ordered(rows: Sequence[Row], times: Sequence[Times], key: str) -> list[Row]:
    """The rows by a column, ascending; `-key` descending. What has no value comes last."""
    down, word = key.startswith("-"), key.lstrip("-")
    known = [*_facts(rows, [row.state for row in rows], times), *_params(rows), *_metrics(rows)]
    column = find(known, word)
    if column is None:
        return list(rows)
    there = [n for n, value in enumerate(column.values) if value is not None and value == value]
    there.sort(key=lambda n: _order(column.values[n]), reverse=down)
    rest = [n for n in range(len(rows)) if n not in set(there)]
    return [rows[n] for n in (*there, *rest)]


def check(found: Sequence[Row], words: Sequence[str], option: str) -> None:
    """Every word names a column of some run; UsageError with the nearest one otherwise."""
    known = [*_facts(found, [""] * len(found), [Times()] * len(found)), *_params(found), *_metrics(found)]
    for word in words:
        if found and find(known, word) is None:
            from hostler.spec.nearest import did_you_mean  # only for words that are wrong

            titles = [column.title.lower() if column in known[:6] else column.title for column in known]
            hint = did_you_mean(word, titles, f"choose from: {', '.join(titles)}")
            raise UsageError(f"{option} {word}: no run has such a column", hint=hint)


def fitting(columns: Sequence[Column], room: int) -> tuple[list[Column], list[str]]:
    """(the columns that fit, titles of those that are left out). Whole columns go, the most spare first."""
    kept, out = list(columns), list[str]()
    while sum(column.width + len(GAP) for column in kept) - len(GAP) > room:
        spare = max(kept, key=lambda column: column.spare)
        if not spare.spare:
            break
        kept.remove(spare)
        out.append(spare.title)
    return kept, [_cut(column.title) for column in columns if column.title in out]


def best_of(rows: Sequence[Row]) -> set[str]:
    """Ids of the best run of each sweep of several, by the value it is ranked by."""
    best: dict[str, Row] = {}
    several = _several(rows)
    for row in rows:
        if row.sweep not in several or row.state not in COUNTED or not row.judged or not row.judged.counts:
            continue
        held = best.get(row.sweep)
        sign = -1 if row.goal == "min" else 1
        if held is None or (held.judged and sign * row.judged.value > sign * held.judged.value):
            best[row.sweep] = row
    return {row.id for row in best.values()}


def at_point(cells: Sequence[str]) -> list[str]:
    """Numbers as texts of one width, their decimal points under each other, NaN at the right; an empty cell
    stays empty."""
    split = [("", cell) if cell.isalpha() else _around_point(cell) for cell in cells]
    before = max((len(whole) for whole, _ in split), default=0)
    after = max((len(rest) for whole, rest in split if whole), default=0)
    room = max(before + after, *(len(rest) for _, rest in split)) if split else 0
    return [
        (whole.rjust(before) + rest.ljust(after)).rjust(room) if whole else rest and rest.rjust(room)
        for whole, rest in split
    ]


def _around_point(cell: str) -> tuple[str, str]:
    place = next((n for n, letter in enumerate(cell) if letter in ".e"), len(cell))
    return cell[:place], cell[place:]


def _facts(rows: Sequence[Row], states: Sequence[str], times: Sequence[Times]) -> list[Column]:
    starred = best_of(rows)
    names = tuple(f"{row.name} {STAR}" if row.id in starred else row.name for row in rows)
    steps = tuple(row.step for row in rows)
    taken, left = tuple(one.taken for one in times), tuple(one.left for one in times)
    return [
        Column(NAME, tuple(row.name for row in rows), names),
        Column(STATE, tuple(states), tuple(states)),
        Column(STEP, steps, tuple("" if step is None else str(step) for step in steps), 4),
        Column(TIME, taken, tuple(map(_elapsed, taken)), 3, is_time=True),
        Column(LEFT, left, tuple(map(_elapsed, left)), 5, is_time=True),
        Column(HOST, tuple(row.host for row in rows), tuple(row.host or "" for row in rows), 7),
    ]


def _elapsed(seconds: float | None) -> str:
    return "" if seconds is None else show_elapsed(seconds)


def _params(rows: Sequence[Row]) -> list[Column]:
    given = [flatten(row.params) for row in rows]
    keys = dict.fromkeys(key for params in given for key in params)
    columns = []
    for n, key in enumerate(keys):
        values = tuple(params.get(key) for params in given)
        cells = tuple(_cut(output.value_text(p[key])) if key in p else "" for p in given)
        columns.append(Column(key, values, cells, 2 + n / 1000))
    return columns


def _metrics(rows: Sequence[Row]) -> list[Column]:
    """Metrics, first the one that runs are ranked by, which is never left out, with the value that counts."""
    ranked = next((row.metric for row in rows if row.metric), None)
    logged = dict.fromkeys(name for row in rows for name in row.metrics if not name.startswith("system/"))
    keys = {key for row in rows for key in flatten(row.params)}
    columns = []
    for n, name in enumerate(sorted(logged, key=lambda name: name != ranked)):
        values = tuple(_value(row, name, ranked) for row in rows)
        cells = tuple("" if value is None else show_number(value) for value in values)
        title = f"metric.{name}" if name in keys else name
        columns.append(Column(title, values, cells, 0 if name == ranked else 6 + n / 1000))
    return columns


def _value(row: Row, name: str, ranked: str | None) -> float | None:
    if name == ranked and row.judged is not None:
        return row.judged.value
    return row.metrics.get(name)


def _varies(column: Column) -> bool:
    return len(set(column.cells)) > 1 or len({repr(value) for value in column.values}) > 1


def _repeats(column: Column, facts: Sequence[Column], params: Sequence[Column]) -> bool:
    """Whether a metric says again what the step or a parameter of its name says."""
    if column.title in STEPS_AGAIN:
        steps = facts[2].values
        return all(a is None or a == b for a, b in zip(column.values, steps, strict=True))
    own = find(params, column.title.removeprefix("metric."))
    return own is not None and all(
        None in (a, b) or a == b for a, b in zip(column.values, own.values, strict=True)
    )


def _several(rows: Sequence[Row]) -> set[str]:
    counts = Counter(row.sweep for row in rows)
    return {sweep for sweep, count in counts.items() if count > 1}


def _cut(text: str) -> str:
    return middle(printable(text), LONGEST)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _order(value: Any) -> tuple[int, float, str]:
    if _is_number(value):
        return (0, float(value), "") if not math.isnan(value) else (1, 0.0, "")
    return (2, 0.0, re.sub(r"\d+", lambda digits: digits[0].zfill(20), str(value)))  # grid/2 before grid/10


def blocks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows that share a table: those of a sweep, or single runs that follow each other."""
    several = _several(rows)
    block: list[Row] = []
    for row in rows:
        kind = row.sweep if row.sweep in several else ""
        last = block and (block[-1].sweep if block[-1].sweep in several else "")
        if block and kind != last:
            yield block
            block = []
        block.append(row)
    if block:
        yield block
