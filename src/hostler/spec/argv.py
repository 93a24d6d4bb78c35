"""The words and variables of one attempt, from a job and a run's parameters.

A command is a list of words end to end; no shell reads it, so a value with spaces, quotes, newlines or
semicolons arrives as exactly one argument. Placeholders are replaced in one pass: a value that holds
braces is never read again, and a `{word}` that is neither a place nor a parameter stays as it is.

How a parameter reaches the command (`style`):

    flags    --key value; a list is --key a b c; null is left out; true and false are written out. Where the
             script's parser wants another form, or `style:` is a table, as that says (`style.py`)
    equals   key=value; a list is JSON
    hydra    key=value by Hydra's grammar, and hydra.run.dir, which is the run's output folder
    json     nothing is added: the command reads {params_file}, which is also $HOSTLER_PARAMS, or gets
             all of them as one word, {params_json}
    env      variables: the key as given, and in capitals with _ for what a variable can't hold
    none     nothing is added

A nested parameter is written with dots. A parameter the command takes as `{key}` is not added again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec import style
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.spec.scalars import kind, parse_value, text
from hostler.spec.script import command_for, script_args
from hostler.spec.style import Form, Style

__all__ = ["PLACES", "STYLES", "Built", "build", "command_for", "params_of", "split_command", "with_params"]

STYLES = ("flags", "equals", "hydra", "json", "env", "none")
PLACES = ("checkpoint_dir", "output_dir", "data_dir", "run_id", "params_file", "params_json")

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_SHELL = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "<", "2>&1"})
# A parameter called `path` must not take away the run's PATH.
_NOT_OURS = frozenset(
    {"PATH", "HOME", "USER", "SHELL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "PWD"}
)


@dataclass(frozen=True)
class Built:
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


def build(job: Job, params: Mapping[str, Any], places: Mapping[str, str], resuming: bool) -> Built:
    """The command line of one attempt and the variables it gets; `places` are the PLACES by name."""
    whole = resuming and job.resume_whole
    head = job.resume if whole else job.command
    tail = job.resume if resuming and not whole else ()
    values = {**params, **flatten(params), **places}
    left = _not_used(params, _used((*head, *tail)) - set(places))
    added = _hydra_words(left, places, head) if job.style == "hydra" else _added(job, left)
    argv = (*_filled(head, values, job.forms), *added, *_filled(tail, values, job.forms))
    env = {key: _fill(value, values) for key, value in job.env.items()}
    if job.style == "env":
        env.update(_variables(left))
    return Built(_passable(argv), env)


def filled(job: Job, words: Sequence[str], params: Mapping[str, Any], places: Mapping[str, str]) -> list[str]:
    """Words with their placeholders replaced, as `build` does it."""
    return _filled(words, {**params, **flatten(params), **places}, job.forms)


def _hydra_words(params: Mapping[str, Any], places: Mapping[str, str], command: Sequence[str]) -> list[str]:
    from hostler.spec import hydra  # its grammar is needed for this style alone

    return hydra.words(params, places, command)


def split_command(command: str) -> tuple[str, ...]:
    """The words of a command written as one text, by POSIX quoting; ValueError if it needs a shell."""
    words = tuple(shlex.split(command))
    if not words:
        raise ValueError("the command is empty")
    for word in words:
        if word in _SHELL:
            raise ValueError(f"{word!r} needs a shell: write bash -c '…', or a script")
    return words


def _used(words: Iterable[str]) -> set[str]:
    return {name for word in words for name in _PLACEHOLDER.findall(word)}


def _not_used(params: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Flat parameters without those the command takes itself, whole tables included."""
    flat = flatten({key: value for key, value in params.items() if key not in used})
    return {key: value for key, value in flat.items() if key not in used}


def _filled(words: Sequence[str], values: Mapping[str, Any], forms: Style) -> list[str]:
    """Words with their placeholders replaced; a list in them becomes words, or one, as its form says."""
    filled: list[str] = []
    for word in words:
        names = [name for name in _PLACEHOLDER.findall(word) if isinstance(values.get(name), (list, tuple))]
        if len(names) == 1:
            filled = _with_list(filled, word, names[0], values, forms.of(names[0]))
        else:
            filled.append(_fill(word, values))
    return filled


def _with_list(before: list[str], word: str, name: str, values: Mapping[str, Any], form: Form) -> list[str]:
    """The words before, and this one, which holds a list: `--key {list}` or `--key={list}`."""
    items, mark = values[name], f"{{{name}}}"
    one = style.joined(items, form)
    if one is None and word == mark:
        option = before[-1:] if form.lists == "repeat" and before and before[-1].startswith("-") else []
        between = [[*option, text(item)] for item in items]
        return [*before[: len(before) - len(option)], *(w for words in between for w in words)]
    if one is None and form.lists == "repeat":
        return [*before, *(_fill(word, {**values, name: item}) for item in items)]
    if one is None and form.lists == "spaces":
        one = " ".join(text(item) for item in items)
    return [*before, _fill(word, values if one is None else {**values, name: one})]


def _fill(word: str, values: Mapping[str, Any]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        return "" if value is None else text(value)

    return _PLACEHOLDER.sub(replacement, word)


def _added(job: Job, params: Mapping[str, Any]) -> list[str]:
    if job.style not in STYLES:
        raise UsageError(f"{job.style!r} is not a style", hint=f"one of {', '.join(STYLES)}")
    if job.style not in ("flags", "equals"):
        return []
    values = {key: value for key, value in params.items() if value is not None}
    if job.style == "equals":
        return [f"{key}={text(value)}" for key, value in values.items()]
    return [word for key, value in values.items() for word in style.words(key, value, job.forms.of(key))]


def _variables(params: Mapping[str, Any]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for key, value in params.items():
        capital = re.sub(r"\W", "_", key.upper(), flags=re.ASCII)
        capital = f"_{capital}" if capital[:1].isdigit() else capital
        if value is not None and capital not in _NOT_OURS:
            variables[capital] = text(value)
    return {**variables, **{k: text(v) for k, v in params.items() if v is not None and "=" not in k}}


def _passable(argv: tuple[str, ...]) -> tuple[str, ...]:
    for word in argv:
        if "\0" in word:
            raise UsageError(f"{word!r} holds a zero byte, which no command line can carry")
    return argv


# A script's own arguments, read as parameters as well as can be, and changed in place.
#
# A script's argument rules are its own, so this reading is a guess: good for showing, searching and
# `--like`; the words of a command are otherwise passed on untouched. `--key value`, `--key=value`,
# `key=value` and bare `--flag` are read. Further words after `--key value` belong to it if they are of
# the same kind (all numbers, or all text): `--layers 1 2 3` is a list, `--lr 0.1 input.csv` is not.


_PAIR = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_NEGATIVE = re.compile(r"-\.?[0-9]")


@dataclass(frozen=True)
class _OptionSpan:
    """An option: words[start:end] of the command."""

    key: str
    start: int
    end: int
    values: tuple[str, ...]
    shape: str  # words (--key a b) | equals (--key=a) | pair (key=a) | flag (--key)


def params_of(argv: Sequence[str]) -> dict[str, Any]:
    """The parameters a command seems to carry; of one given twice, the last."""
    return {option.key: _value(option) for option in _options(argv)}


def with_params(
    argv: Sequence[str], params: Mapping[str, Any], forms: Style | None = None
) -> tuple[str, ...]:
    """The command with these parameters' values replaced where they stand, and added where they don't.

    None takes an option away. `-` and `_` in keys are the same if there is no exact match. `forms`: how the
    script wants its options, where that is known.
    """
    forms = forms or Style()
    options = list(_options(argv))
    new = {_spelling(key, options): value for key, value in flatten(params).items()}
    words, present = list(argv), set[str]()
    for option in reversed(options):
        key = _parameter(option, new, forms)
        if key is not None:
            form, again = forms.of(key), key in present
            told = (
                [] if again and form != Form() else _replaced(option, key, argv[option.start], new[key], form)
            )
            words[option.start : option.end] = told
            present.add(key)
    pairs = bool(options) and all(option.shape == "pair" for option in options)
    for key, value in new.items():
        if key not in present and value is not None:
            words += [f"{key}={text(value)}"] if pairs else style.words(key, value, forms.of(key))
    return tuple(words)


def _parameter(option: _OptionSpan, new: Mapping[str, Any], forms: Style) -> str | None:
    """The new parameter that an option stands for: its own key's, or `amp` for --no-amp."""
    if option.key in new:
        return option.key
    word = f"--{option.key}"
    return next((k for k in new for w in (forms.of(k).true, forms.of(k).false) if w and word in w), None)


def _options(argv: Sequence[str]) -> Iterator[_OptionSpan]:
    at = script_args(argv)
    while at < len(argv):
        word = argv[at]
        option = _option(argv, at) if word.startswith("--") and len(word) > 2 else _pair(word, at)
        if option:
            yield option
        at = option.end if option else at + 1


def _option(argv: Sequence[str], at: int) -> _OptionSpan:
    key, equals, value = argv[at][2:].partition("=")
    if equals:
        return _OptionSpan(key, at, at + 1, (value,), "equals")
    end = at + 1
    while end < len(argv) and _is_value(argv[end]) and (end == at + 1 or _alike(argv[at + 1], argv[end])):
        end += 1
    values = tuple(argv[at + 1 : end])
    return _OptionSpan(key, at, end, values, "words" if values else "flag")


def _pair(word: str, at: int) -> _OptionSpan | None:
    match = _PAIR.fullmatch(word)
    return _OptionSpan(match[1], at, at + 1, (match[2],), "pair") if match else None


def _is_value(word: str) -> bool:
    return (not word.startswith("-") or bool(_NEGATIVE.match(word))) and not _PAIR.fullmatch(word)


def _alike(first: str, word: str) -> bool:
    numbers = ("int", "float")
    return kind(word) == kind(first) or (kind(word) in numbers and kind(first) in numbers)


def _value(option: _OptionSpan) -> Any:
    if option.shape == "flag":
        return True
    values = [parse_value(word) for word in option.values]
    return values[0] if len(values) == 1 else values


def _spelling(key: str, options: Sequence[_OptionSpan]) -> str:
    """The key as the command spells it."""
    present = [option.key for option in options]
    same = [k for k in present if k.replace("-", "_") == key.replace("-", "_")]
    return key if key in present or not same else same[-1]


def _replaced(option: _OptionSpan, key: str, word: str, value: Any, form: Form) -> list[str]:
    if value is None:
        return []
    if option.shape == "pair":
        return [f"{word.partition('=')[0]}={text(value)}"]
    if option.shape == "flag" and isinstance(value, bool) and form.true is None and not form.booleans:
        return [word] if value else []
    if option.shape == "equals":
        form = replace(form, assign=form.assign or "equals")
    return style.words(key, value, form)
