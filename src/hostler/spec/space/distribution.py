"""A table that says how a parameter's values come about (`{min: 1, max: 8, int: true}`), to its form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.spec.space import draw, expression, ladder
from hostler.spec.space.entry import Constant, Derived, Form, Normal, Range, Values
from hostler.spec.space.fault import Fault, Path
from hostler.spec.space.ladder import Number
from hostler.spec.space.value import plain

# word → the words that may stand beside it (`when` always may)
DECIDING: dict[str, tuple[str, ...]] = {
    "value": (),
    "values": ("count",),
    "min": ("max", "log", "int", "step", "q", "count"),
    "max": ("min", "log", "int", "step", "q", "count"),
    "uniform": ("int", "step", "q", "count"),
    "log_uniform": ("int", "q", "count"),
    "normal": ("q", "count"),
    "log_normal": ("q", "count"),
    "start": ("step", "factor", "count"),
    "expr": (),
    "when": (),
}
WORDS = (*DECIDING, "log", "int", "step", "factor", "count", "q")

Given = Mapping[str, Any]

_LARGEST = 10**300  # what a float can hold, with room


def read_form(key: str, given: Given, path: Path, seed: int) -> Form:
    """The form a table describes; `seed` is for `count` draws, which are fixed here."""
    word = next((word for word in DECIDING if word in given and word != "when"), None)
    if word is None:
        raise Fault(
            path, "`when` has a condition but no value", hint="for example {value: 0.9, when: {optim: sgd}}"
        )
    for other in given:
        if other not in (word, "when", *DECIDING[word]):
            raise Fault((*path, other), f"cannot be combined with {word}")
    if word == "value":
        return Constant(key, plain(given["value"], (*path, "value")))
    if word == "values":
        return Values(key, _values(given, path))
    if word == "start":
        return Values(key, _ladder(given, path))
    if word == "expr":
        return _derived(key, given["expr"], (*path, "expr"))
    form = _normal(key, word, given, path) if "normal" in word else _range(key, word, given, path)
    if "count" not in given:
        return form
    count = _count(given, path)
    return Values(key, [drawn(form, draw.bits(seed, k, key)) for k in range(count)])


def drawn(form: Range | Normal, bits: int) -> Number:
    """The value that random bits give."""
    if isinstance(form, Normal):
        value: Number = draw.normal(bits, form.mean, form.deviation)
        value = draw.exponential(value) if form.log else value
        return value if form.quantum is None else draw.rounded(value, form.quantum)
    if form.whole:
        return draw.whole(bits, int(form.low), int(form.high), log=form.log, step=int(form.step or 1))
    value = draw.real(bits, float(form.low), float(form.high), log=form.log, step=form.step)
    if form.quantum is None:
        return value
    return min(max(draw.rounded(value, form.quantum), form.low), form.high)


def finite(form: Range) -> Sequence[Number] | None:
    """All values of a range that has a finite number of them."""
    step = form.step or 1 if form.whole else form.step
    if step is None or (count := ladder.inside(form.low, form.high, step)) > ladder.LONGEST:
        return None
    return ladder.steps(form.low if form.whole else float(form.low), step, count)


def _values(given: Given, path: Path) -> Sequence[Any]:
    values, at = given["values"], (*path, "values")
    if not isinstance(values, (list, tuple, range)):
        raise Fault(at, f"{values!r} is not a list")
    if not values:
        raise Fault(at, "an empty list: no values", hint="give it values, or leave it out")
    found = [plain(value, (*at, n)) for n, value in enumerate(values)]
    if "count" not in given:
        return found
    return [found[k % len(found)] for k in range(_count(given, path))]


def _ladder(given: Given, path: Path) -> Sequence[Number]:
    ways = [word for word in ("step", "factor") if word in given]
    if len(ways) != 1 or "count" not in given:
        raise Fault(
            path, "start needs step or factor, and count", hint="for example {start: 64, factor: 2, count: 4}"
        )
    start, each = _number(given, "start", path), _number(given, ways[0], path)
    try:
        return (ladder.steps if ways[0] == "step" else ladder.factors)(start, each, _count(given, path))
    except ValueError as error:
        raise Fault(path, str(error)) from None


def _derived(key: str, text: Any, path: Path) -> Form:
    """An expression of other parameters; one of numbers alone is a constant or an axis."""
    if not isinstance(text, str):
        return Constant(key, plain(text, path))
    try:
        found = expression.read(text)
        if found.names and found.makes_axis:
            raise ValueError("an axis cannot depend on other parameters")
        if found.names:
            return Derived(key, found)
        value = found.value({})
    except ValueError as error:
        raise Fault(path, str(error)) from None
    if found.makes_axis and not value:
        raise Fault(path, "an empty list: no values")
    return Values(key, value) if found.makes_axis else Constant(key, value)


def _normal(key: str, word: str, given: Given, path: Path) -> Normal:
    mean, deviation = _pair(given, word, path, "[mean, deviation]")
    if deviation < 0:
        raise Fault((*path, word), "the deviation is below 0")
    return Normal(key, float(mean), float(deviation), word == "log_normal", _positive(given, "q", path))


def _range(key: str, word: str, given: Given, path: Path) -> Range:
    if word in ("min", "max"):
        other = "max" if word == "min" else "min"
        if other not in given:
            raise Fault(path, f"{word} without {other}")
        low, high = _number(given, "min", path), _number(given, "max", path)
    else:
        low, high = _pair(given, word, path, "[low, high]")
    whole, log = _flag(given, "int", path), word == "log_uniform" or _flag(given, "log", path)
    step, quantum = _positive(given, "step", path), _positive(given, "q", path)
    if low > high:
        raise Fault(path, f"{low} is above {high}", hint="give the lower end first")
    if log and low <= 0:
        raise Fault(path, f"a logarithmic range cannot begin at {low}", hint="it must be above 0")
    if step and (quantum or log):
        raise Fault((*path, "step"), f"cannot be combined with {'q' if quantum else 'log'}")
    if whole and any(not _is_whole(one) for one in (low, high, step or 1)):
        raise Fault(path, "int needs ends and a step that are whole numbers")
    if whole and quantum:
        raise Fault((*path, "q"), "cannot be combined with int", hint="step: can")
    if whole:
        low, high, step = int(low), int(high), None if step is None else int(step)
    return Range(key, low, high, log, whole, step, quantum)


def _pair(given: Given, word: str, path: Path, shape: str) -> tuple[Number, Number]:
    pair, at = given[word], (*path, word)
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise Fault(at, f"{pair!r} is not {shape}")
    return _finite(pair[0], (*at, 0)), _finite(pair[1], (*at, 1))


def _number(given: Given, word: str, path: Path) -> Number:
    return _finite(given[word], (*path, word))


def _finite(value: Any, path: Path) -> Number:
    value = plain(value, path)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise Fault(path, "too large a number")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        hint = "take the quotes away" if isinstance(value, str) else ""
        raise Fault(path, f"{value!r} is not a number", hint)
    return value


def _positive(given: Given, word: str, path: Path) -> Number | None:
    if word not in given:
        return None
    value = _number(given, word, path)
    if value <= 0:
        raise Fault((*path, word), f"{value} is not above 0")
    return value


def _flag(given: Given, word: str, path: Path) -> bool:
    value = given.get(word, False)
    if not isinstance(value, bool):
        raise Fault((*path, word), f"{value!r} is not true or false")
    return value


def _count(given: Given, path: Path) -> int:
    value = _number(given, "count", path)
    if not _is_whole(value) or not 1 <= value <= ladder.LONGEST:
        raise Fault((*path, "count"), f"{value} is not a whole number from 1 to {ladder.LONGEST:,}")
    return int(value)


def _is_whole(value: Number) -> bool:
    return isinstance(value, int) or value.is_integer()
