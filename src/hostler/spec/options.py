"""A script's own arguments, read as parameters as well as can be, and changed in place.

A script's argument rules are its own, so this reading is a guess: good for showing, searching and
`--like`; the words of a command are otherwise passed on untouched. `--key value`, `--key=value`,
`key=value` and bare `--flag` are read. Further words after `--key value` belong to it if they are of
the same kind (all numbers, or all text): `--layers 1 2 3` is a list, `--lr 0.1 input.csv` is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hostler.spec.params import flatten
from hostler.spec.scalars import kind, parse_value, text
from hostler.spec.script import script_args

_PAIR = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_NEGATIVE = re.compile(r"-\.?[0-9]")


@dataclass(frozen=True)
class _Option:
    """One option: words[start:end] of the command."""

    key: str
    start: int
    end: int
    values: tuple[str, ...]
    shape: str  # words (--key a b) | equals (--key=a) | pair (key=a) | flag (--key)


def params_of(argv: Sequence[str]) -> dict[str, Any]:
    """The parameters a command seems to carry; of one given twice, the last."""
    return {option.key: _value(option) for option in _options(argv)}


def with_params(argv: Sequence[str], params: Mapping[str, Any]) -> tuple[str, ...]:
    """The command with these parameters' values replaced where they stand, and added where they don't.

    None takes an option away. `-` and `_` in keys are the same if there is no exact match.
    """
    options = list(_options(argv))
    new = {_spelling(key, options): value for key, value in flatten(params).items()}
    words = list(argv)
    for option in reversed(options):
        if option.key in new:
            words[option.start : option.end] = _replaced(option, argv[option.start], new[option.key])
    shape = "pair" if options and all(option.shape == "pair" for option in options) else "words"
    present = {option.key for option in options}
    for key, value in new.items():
        if key not in present and value is not None:
            words += written(key, value, shape)
    return tuple(words)


def written(key: str, value: Any, shape: str = "words") -> list[str]:
    """The words of one parameter. A value that would be taken for an option is tied to its key by `=`."""
    if shape == "pair":
        return [f"{key}={text(value)}"]
    option = f"--{key.lstrip('-')}"
    if isinstance(value, (list, tuple)) and shape == "words":
        return [option, *(text(item) for item in value)]
    one = text(value)
    if shape == "equals" or (one.startswith("-") and not re.fullmatch(r"-\d+|-\d*\.\d+", one)):
        return [f"{option}={one}"]
    return [option, one]


def _options(argv: Sequence[str]) -> Iterator[_Option]:
    at = script_args(argv)
    while at < len(argv):
        word = argv[at]
        option = _option(argv, at) if word.startswith("--") and len(word) > 2 else _pair(word, at)
        if option:
            yield option
        at = option.end if option else at + 1


def _option(argv: Sequence[str], at: int) -> _Option:
    key, equals, value = argv[at][2:].partition("=")
    if equals:
        return _Option(key, at, at + 1, (value,), "equals")
    end = at + 1
    while end < len(argv) and _is_value(argv[end]) and (end == at + 1 or _alike(argv[at + 1], argv[end])):
        end += 1
    values = tuple(argv[at + 1 : end])
    return _Option(key, at, end, values, "words" if values else "flag")


def _pair(word: str, at: int) -> _Option | None:
    match = _PAIR.fullmatch(word)
    return _Option(match[1], at, at + 1, (match[2],), "pair") if match else None


def _is_value(word: str) -> bool:
    return (not word.startswith("-") or bool(_NEGATIVE.match(word))) and not _PAIR.fullmatch(word)


def _alike(first: str, word: str) -> bool:
    numbers = ("int", "float")
    return kind(word) == kind(first) or (kind(word) in numbers and kind(first) in numbers)


def _value(option: _Option) -> Any:
    if option.shape == "flag":
        return True
    values = [parse_value(word) for word in option.values]
    return values[0] if len(values) == 1 else values


def _spelling(key: str, options: Sequence[_Option]) -> str:
    """The key as the command spells it."""
    present = [option.key for option in options]
    same = [k for k in present if k.replace("-", "_") == key.replace("-", "_")]
    return key if key in present or not same else same[-1]


def _replaced(option: _Option, word: str, value: Any) -> list[str]:
    if value is None or (option.shape == "flag" and value is False):
        return []
    if option.shape == "flag" and value is True:
        return [word]
    key = word.partition("=")[0] if option.shape == "pair" else option.key
    return written(key, value, "words" if option.shape == "flag" else option.shape)
