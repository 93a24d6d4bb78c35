"""The `filter` of a listing: `labels.a=b`, `name eq 'x.*'`, `(status != RUNNING) AND (…)`, OR, NOT, `name:x`.

`=` and `!=` compare whole values, with `*` standing for anything; `eq` and `ne` match a regular expression
against the whole value; `:` finds a part, or with `*` alone that the field is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hostler.emulators.gce.api.refusal import invalid

_TOKEN = re.compile(
    r"""\s*(?:(?P<open>\()|(?P<close>\))|(?P<op>!=|>=|<=|=|:|<|>)"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<word>[^\s()=!:<>"']+))"""
)
_OPS = ("=", "!=", ":", "eq", "ne", "<", "<=", ">", ">=")

Test = Callable[[Mapping[str, Any]], bool]


def chosen(items: Sequence[dict[str, Any]], text: str | None) -> list[dict[str, Any]]:
    if not text or not text.strip():
        return list(items)
    test = parse(text)
    return [item for item in items if test(item)]


def parse(text: str) -> Test:
    reader = _Reader(text)
    test = reader.any_of()
    if reader.tokens:
        raise reader.wrong()
    return test


class _Reader:
    """Recursive descent: OR binds weaker than AND, and two tests side by side are both meant."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)

    def wrong(self) -> Exception:
        return invalid("filter", self.text, "Invalid list filter expression.")

    def any_of(self) -> Test:
        tests = [self._all_of()]
        while self._word("OR"):
            tests.append(self._all_of())
        return lambda item: any(test(item) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._one()]
        while self.tokens and self.tokens[0] != ("close", ")") and self.tokens[0] != ("word", "OR"):
            self._word("AND")
            tests.append(self._one())
        return lambda item: all(test(item) for test in tests)

    def _one(self) -> Test:
        if self._word("NOT"):
            inner = self._one()
            return lambda item: not inner(item)
        kind, field = self._next()
        if kind == "open":
            inner = self.any_of()
            if self._next()[0] != "close":
                raise self.wrong()
            return inner
        return self._comparison(kind, field)

    def _comparison(self, kind: str, field: str) -> Test:
        kind_of_op, op = self._next()
        kind_of_value, value = self._next()
        bad = kind not in ("word", "quoted") or kind_of_value not in ("word", "quoted")
        if bad or op not in _OPS or kind_of_op == "quoted":
            raise self.wrong()
        if op in ("eq", "ne"):
            try:
                re.compile(value)
            except re.error:
                raise self.wrong() from None
        return lambda item: _holds(_values(item, field), op, value)

    def _word(self, word: str) -> bool:
        if self.tokens and self.tokens[0] == ("word", word):
            self.tokens.pop(0)
            return True
        return False

    def _next(self) -> tuple[str, str]:
        if not self.tokens:
            raise self.wrong()
        return self.tokens.pop(0)

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if not match:
                raise self.wrong()
            kind = str(match.lastgroup)
            name = "quoted" if kind in ("double", "single") else kind
            tokens.append((name, re.sub(r"\\(.)", r"\1", match[kind]) if name == "quoted" else match[kind]))
            at = match.end()
        return tokens


def _values(item: object, field: str) -> list[str]:
    """The field's value as text; of a list all of them; none if it is not there."""
    found = [item]
    for part in field.split("."):
        found = [one[part] for one in found if isinstance(one, Mapping) and part in one]
        found = [each for one in found for each in (one if isinstance(one, list) else [one])]
    return [_text(one) for one in found]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _holds(values: list[str], op: str, wanted: str) -> bool:
    if op in ("!=", "ne"):
        return not _holds(values, "=" if op == "!=" else "eq", wanted)
    if op == "=":
        pattern = ".*".join(re.escape(part) for part in wanted.split("*"))
        return any(re.fullmatch(pattern, value, re.I | re.S) for value in values)
    if op == "eq":
        return any(re.fullmatch(wanted, value) for value in values)
    if op == ":":
        return (
            bool(values)
            if wanted == "*"
            else any(wanted.strip("*").lower() in value.lower() for value in values)
        )
    return any(_ordered(value, op, wanted) for value in values)


def _ordered(value: str, op: str, wanted: str) -> bool:
    left, right = _number(value), _number(wanted)
    pair = (value, wanted) if left is None or right is None else (left, right)
    less, same = pair[0] < pair[1], pair[0] == pair[1]  # type: ignore[operator]
    return {"<": less, "<=": less or same, ">": not (less or same), ">=": not less}[op]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
