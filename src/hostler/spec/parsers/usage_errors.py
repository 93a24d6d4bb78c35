"""Reads the usage error of a parser whose source could not be read: the form that it wants instead. Pure.

argparse prints its usage, which tells each option's form; click and typer name the option, or the words that
were too many. Where words fit several options, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from hostler.spec.params import flatten
from hostler.spec.style import Form, Style, words

LINES = 60  # from the end of what was printed
_MOST = 8  # parameters whose words are tried in all combinations
_FRAME = re.compile("[│╭╮╰╯─]")
_USAGE = re.compile(r"(?s).*usage: (.*?)\S*error: (.*)", re.IGNORECASE)
_EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \(([^)]*)\)")
_OPTION = r"(?:argument ([^:\s]+): |[Oo]ption '?([\w.-]+)'? )"
_NO_VALUE = re.compile(_OPTION + "(?:ignored explicit argument|does not take a value)")
_VALUE = re.compile(_OPTION + "(?:expected one argument|requires an argument)")


def open_keys(params: Mapping[str, Any], forms: Style) -> dict[str, Any]:
    """Booleans and lists whose form nobody knows for sure, by dotted key."""
    return {key: value for key, value in flatten(params).items() if _is_open(value, forms.of(key))}


def other_forms(printed: str, params: Mapping[str, Any], forms: Style) -> dict[str, Form]:
    """The forms that a usage error at the end of an output asks for; {} if it is none, or tells nothing."""
    asked = open_keys(params, forms)
    text = " ".join(_FRAME.sub(" ", "\n".join(printed.splitlines()[-LINES:])).split())
    options = {words(key, True, Form(option=forms.of(key).option))[0]: key for key in asked}
    named = _named(text, options, asked)
    if named:
        return named
    if "Too many command-line arguments" in text:  # absl
        return {
            key: Form("value", assign="equals") for key, value in asked.items() if isinstance(value, bool)
        }
    if "Could not consume arg" in text:  # Fire
        literal = Form(lists="json", assign="equals", literal=True)
        return {key: literal for key, value in asked.items() if isinstance(value, (list, tuple))}
    usage = _USAGE.match(text)
    if usage and "unrecognized arguments: " in usage[2]:
        return _of_usage(usage[1], usage[2], options, asked)
    extra = _EXTRA.search(text)
    return _fitting(extra[1].split(), asked, forms) if extra else {}


def _is_open(value: Any, form: Form) -> bool:
    if isinstance(value, bool):
        return form.true is None and form.booleans != "value"
    return isinstance(value, (list, tuple)) and not form.lists


def _named(text: str, options: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, Form]:
    """Of an error that names one option, for which a value was too much or too little."""
    for pattern, form in ((_NO_VALUE, Form("bare")), (_VALUE, Form("value"))):
        match = pattern.search(text)
        names = (match[1] or match[2]).split("/") if match else []
        key = next((options[name] for name in names if name in options), None)
        if key is not None and isinstance(asked[key], bool):
            return {key: form}
    return {}


def _of_usage(
    usage: str, refused: str, options: Mapping[str, str], asked: Mapping[str, Any]
) -> dict[str, Form]:
    """Of argparse: the usage shows each option as [--x], [--x | --no-x] or [--x X]."""
    left = set(refused.partition("unrecognized arguments: ")[2].split())
    forms: dict[str, Form] = {}
    for option, key in options.items():
        shown = re.search(rf"(?<![\w-]){re.escape(option)}(?=[\] |)]|$)([^\[\]()]*)", usage)
        if shown is None or option in left:
            continue  # an option that it does not have, in whatever form
        rest = shown[1].strip()
        if isinstance(asked[key], bool) and rest.startswith(("| --no-", ", --no-")):
            forms[key] = Form("no-prefix")
        elif isinstance(asked[key], bool) and (not rest or rest.startswith("|")):
            forms[key] = Form("bare")
        elif isinstance(asked[key], (list, tuple)) and rest and usage[shown.end() :][:1] != "[":
            forms[key] = Form(lists="repeat")
    return forms


def _fitting(extra: list[str], asked: Mapping[str, Any], forms: Style) -> dict[str, Form]:
    """Of click: the parameters whose words are those that were too many, if only some fit."""
    surplus = {key: words(key, value, forms.of(key))[2:] for key, value in asked.items() if value != []}
    for key, value in asked.items():
        if isinstance(value, bool):
            surplus[key] = words(key, value, forms.of(key))[1:]
    keys = [key for key, over in surplus.items() if over][:_MOST]
    fits = [
        some
        for n in range(1, len(keys) + 1)
        for some in combinations(keys, n)
        if [word for key in some for word in " ".join(surplus[key]).split()] == extra
    ]
    if len(fits) != 1:
        return {}
    return {key: Form("bare") if isinstance(asked[key], bool) else Form(lists="repeat") for key in fits[0]}
