"""The form in which parameters are written as options: one for all of a command's, others for single keys.

`style: {booleans: bare, keys: {ema: {booleans: value}}}` of a file, completed at submission by what the
script's parser declares. Pure. A job's record holds it beside the word `style`, as a table of what differs
from the default: an older record has none, and an older hostler writes options as it always did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.scalars import text

BOOLEANS = ("bare", "no-prefix", "value")
LISTS = ("repeat", "spaces", "comma", "joined", "json")
ASSIGN = ("space", "equals")

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_PLAIN = re.compile(r"(?!(?:True|False|None)$)[A-Za-z_/][\w./@+-]*", re.ASCII)


@dataclass(frozen=True)
class Form:
    """The words of one option. '' and None: as usual."""

    booleans: str = ""  # bare | no-prefix | value
    lists: str = ""  # repeat | spaces | comma | joined | json
    assign: str = ""  # space | equals
    option: str = ""  # as the parser spells it; '' is --key
    true: tuple[str, ...] | None = None  # the very words, where the parser has words of its own
    false: tuple[str, ...] | None = None
    literal: bool = False  # the script reads values as Python literals
    declared: bool = True  # False: the parser surely has no such option

    def over(self, base: Form) -> Form:
        """This form, and the base's where this one says nothing."""
        usual = Form()
        own = {f.name: getattr(self, f.name) for f in fields(Form)}
        return replace(base, **{name: value for name, value in own.items() if value != getattr(usual, name)})


@dataclass(frozen=True)
class Style:
    """The form of a command's options; `keys` have forms of their own, by key with `_` for `-`."""

    general: Form = field(default_factory=Form)
    keys: Mapping[str, Form] = field(default_factory=dict)

    def of(self, key: str) -> Form:
        own = self.keys.get(same_key(key))
        return own.over(self.general) if own else self.general

    def given(self, keys: Mapping[str, Form]) -> Style:
        """With these forms in place of those that the keys had."""
        return replace(self, keys={**self.keys, **{same_key(key): form for key, form in keys.items()}})


def same_key(key: str) -> str:
    """Equal for keys that differ only in dashes and underscores."""
    return key.lstrip("-").replace("-", "_")


def words(key: str, value: Any, form: Form) -> list[str]:
    """The words of one parameter; a value that would be taken for an option is tied to its key by `=`."""
    option = form.option or f"--{key.lstrip('-')}"
    if isinstance(value, bool):
        return _switch(option, value, form)
    if isinstance(value, (list, tuple)):
        return _list(option, value, form)
    return _tied(option, written(value, form), form)


def joined(value: Any, form: Form) -> str | None:
    """A list as one word, where its form has one; None where its items are words of their own."""
    if form.lists == "comma":
        return ",".join(written(item, form) for item in value)
    if form.lists == "joined":
        return " ".join(written(item, form) for item in value)
    return written(value, form) if form.lists == "json" else None


def written(value: Any, form: Form) -> str:
    """A value as one word."""
    if not form.literal:
        return text(value)
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else repr(value)
    return repr(list(value) if isinstance(value, tuple) else value)


def in_words(key: str, form: Form) -> str:
    """The form of a key for a person; '' where there is nothing to say."""
    if not form.declared:
        return f"{key}: not among the script's options"
    option = form.option or f"--{key}"
    parts = []
    if form.booleans or form.true is not None:
        pair = [" ".join(_switch(option, value, form)) or "left out" for value in (True, False)]
        parts.append(f"true is {pair[0]}, false is {pair[1]}")
    if form.lists:
        parts.append(f"a list is {' '.join(_list(option, ['A', 'B'], replace(form, literal=False)))}")
    if not parts and (form.option not in ("", f"--{key}") or form.assign == "equals"):
        parts.append(" ".join(_tied(option, "VALUE", form)))
    return f"{key}: {', '.join(parts)}" if parts else ""


def to_json(style: Style) -> dict[str, Any]:
    keys = {key: _sparse(form) for key, form in style.keys.items()}
    return {**_sparse(style.general), **({"keys": keys} if keys else {})}


def from_json(record: Mapping[str, Any]) -> Style:
    """Unknown words are left alone: a later minor version's."""
    keys = {str(key): _form(form) for key, form in record.get("keys", {}).items()}
    return Style(_form(record), keys)


def _switch(option: str, value: bool, form: Form) -> list[str]:
    exact = form.true if value else form.false
    if exact is not None:
        return list(exact)
    if form.booleans == "bare":
        return [option] if value else []
    if form.booleans == "no-prefix":
        return [option if value else f"--no-{option.lstrip('-')}"]
    return _tied(option, written(value, form), form)


def _list(option: str, value: Any, form: Form) -> list[str]:
    how = form.lists or ("json" if form.assign == "equals" else "spaces")
    one = joined(value, replace(form, lists=how))
    if one is not None:
        return _tied(option, one, form)
    if how == "repeat":
        return [word for item in value for word in _repeated(option, item, form)]
    return [option, *(written(item, form) for item in value)]


def _repeated(option: str, item: Any, form: Form) -> list[str]:
    """An option that comes once for each item; an item may be a list itself."""
    if isinstance(item, (list, tuple)):
        return [option, *(written(inner, form) for inner in item)]
    return _tied(option, written(item, form), form)


def _tied(option: str, word: str, form: Form) -> list[str]:
    ambiguous = word.startswith("-") and not _NUMBER.fullmatch(word)
    return [f"{option}={word}"] if ambiguous or form.assign == "equals" else [option, word]


def _sparse(form: Form) -> dict[str, Any]:
    usual, own = Form(), {f.name: getattr(form, f.name) for f in fields(Form)}
    return {name: value for name, value in own.items() if value != getattr(usual, name)}


def _form(record: Mapping[str, Any]) -> Form:
    usual, form = Form(), dict[str, Any]()
    for name in (f.name for f in fields(Form) if f.name in record):
        value = tuple(record[name]) if isinstance(record[name], list) else record[name]
        is_words = name in ("true", "false") and isinstance(value, tuple)
        if not (
            all(type(word) is str for word in value)
            if is_words
            else type(value) is type(getattr(usual, name))
        ):
            raise TypeError(f"{name}: {value!r}")
        form[name] = value
    return Form(**form)
