"""A config from a file and `key=value` words, and back: types by the key's annotation, errors with
their place."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from hostler.errors import MissingError, SpecError
from hostler.spec import yaml12
from hostler.spec.nearest import did_you_mean
from hostler.train.config import KEYS, Config

# names that a key had once; what old files say still counts
OLD_NAMES = {"lr": "base_lr", "epochs": "train_length"}
OPTIONS = ("model_options",)  # maps of anything


def load(path: Path | None, words: Iterable[str] = ()) -> Config:
    """The file's keys, then the words `key=value`, over the defaults."""
    given: dict[str, Any] = {}
    if path is not None:
        given.update(read(path))
    for word in words:
        _put(given, *_word(word))
    return make(given, where=str(path) if path else "")


def read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except OSError as error:
        raise MissingError(f"{path}: {error.strerror}", hint="hostler train config.yaml") from None
    document = yaml12.load(text, str(path))
    if document.value is None:
        return {}
    if not isinstance(document.value, Mapping):
        raise SpecError("a config is keys and values", where=document.where())
    for name, value in document.value.items():
        _check(name, value, document.where((name,)))
    return dict(document.value)


def make(given: Mapping[str, Any], where: str = "") -> Config:
    """A config of plain values; a key that is unknown, or a value of another kind, is an error."""
    values = {name: _check(name, value, where) for name, value in given.items()}
    try:
        return Config(**values)
    except SpecError as error:
        raise SpecError(error.message, error.hint, where=where) from None


def dump(config: Config) -> str:
    """The resolved config as YAML, in the order of the keys."""
    return "".join(f"{name}: {json.dumps(_plain(getattr(config, name)))}\n" for name in KEYS)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def _word(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals:
        raise SpecError(f"{word!r} is not key=value", hint="for example base_lr=0.1")
    name = name.lstrip("-")
    if _is_option(name):
        return name, yaml12.load(text, name).value if text else None
    return name, _check(name, yaml12.load(text, name).value if text else None, "")


def _is_option(name: str) -> bool:
    """`model_options.n_layer`: one entry of a map, as sweeps write nested parameters."""
    outer, dot, inner = name.partition(".")
    return outer in OPTIONS and bool(dot) and bool(inner)


def _put(given: dict[str, Any], name: str, value: Any) -> None:
    if not _is_option(name):
        given[name] = value
        return
    outer, *inner, last = name.split(".")
    inside = given[outer] = _as_options(given.get(outer) or {})
    for part in inner:
        known = inside.get(part)
        inside[part] = dict(known) if isinstance(known, Mapping) else {}
        inside = inside[part]
    inside[last] = value


def _check(name: str, value: Any, where: str) -> Any:
    if name not in KEYS:
        old = OLD_NAMES.get(name)
        hint = (
            f"it is called {old} here" if old else did_you_mean(name, KEYS, "docs/trainer.md lists the keys")
        )
        raise SpecError(f"there is no key {name!r}", hint, where=where)
    try:
        return _as(HINTS[name], value)
    except (TypeError, ValueError):
        raise SpecError(f"{name}: {value!r} is not {_named(HINTS[name])}", where=where) from None


def _as(kind: Any, value: Any) -> Any:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _as_one_of(inside, value)
    if origin is tuple:
        if isinstance(value, str):
            value = [part.strip() for part in value.strip("()[]").split(",") if part.strip()]
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return tuple(_as(inside[0], one) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return _as_options(value) if inside[1] is Any else _as_map(value)
    if kind is type(None):
        if value is not None:
            raise TypeError
        return None
    return _as_plain(kind, value)


def _as_one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        try:
            return _as(kind, value)
        except (TypeError, ValueError):
            continue
    raise TypeError


def _as_plain(kind: Any, value: Any) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError
    return value


def _as_map(value: Any) -> dict[str, str | None]:
    """A map, or a text that holds one: parsed, never evaluated."""
    if isinstance(value, str):
        value = yaml12.load(value, "data_splits_map").value
    if not isinstance(value, Mapping) or not all(
        isinstance(one, (str, type(None))) for one in value.values()
    ):
        raise TypeError
    return {str(name).strip("'\""): one for name, one in value.items()}


def _as_options(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = yaml12.load(value, "model_options").value
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError
    return dict(value)


def _named(kind: Any) -> str:
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        type(None): "null",
    }
    if kind in words:
        return words[kind]
    inside = [_named(one) for one in get_args(kind)]
    if get_origin(kind) is tuple:
        return f"a list, each {inside[0]}"
    return (
        "a map of names"
        if len(inside) < 2 or get_origin(kind) not in (Union, types.UnionType)
        else " or ".join(inside)
    )


HINTS = get_type_hints(Config)
