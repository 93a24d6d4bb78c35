"""A config from a file and `key=value` words, and back: types by the key's annotation, errors with
their place."""

from __future__ import annotations

import ast
import json
import math
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from hostler.errors import MissingError, SpecError
from hostler.spec import scalars
from hostler.spec.files import yaml12
from hostler.spec.nearest import did_you_mean
from hostler.spec.params import flatten
from hostler.train.config import KEYS, Config

# what others call a key
OTHER_NAMES = {"lr": "base_lr", "epochs": "train_length", "compile_mode": "compile"}
ENDLESS = ("inf", "-inf")  # as Python writes what YAML calls .inf, and workers with it


def load(path: Path | None, words: Iterable[str] = ()) -> Config:
    """The file's keys, then the words `key=value`, over the defaults. What cannot be is the file's where the
    file alone says it."""
    of_file = {} if path is None else read(path)
    values = dict(of_file)
    for name, value in words_to_values(words):
        _put(values, name, value)
    try:
        return make(values)
    except SpecError:
        if path is not None:
            make(of_file, where=str(path))
        raise


def from_words(words: Sequence[str], folder: Path = Path()) -> Config:
    """`[CONFIG.yaml] key=value …`, or `--key value …` as workers write it; `folder`: where they are read."""
    path = folder / words[0] if words and _is_path(words[0], folder) else None
    return load(path, words[1:] if path else words)


def names(words: Sequence[str], folder: Path = Path()) -> set[str]:
    """Keys that the file or the words give."""
    path = folder / words[0] if words and _is_path(words[0], folder) else None
    of_words = {name for name, _ in words_to_values(words[1:] if path else words)}
    return of_words | set(read(path) if path else {})


def restated(words: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    """Parameters of a run that a command line cannot carry, as more words. Null, where that means
    something: it is left out, and a file's value would stand. Entries of maps: nobody knows their types, and
    a list of one, or a text that looks like a number, would be another thing."""
    said = {word.partition("=")[0].lstrip("-") for word in words}
    found = []
    for name, value in flatten(params).items():
        if value is None and (_is_entry(name) or (name in KEYS and _may_be_null(name))):
            found.append(f"{name}=null")
        elif name in said and _is_entry(name):
            found.append(f"{name}={_written(value)}")
    return found


def check_name(name: str) -> None:
    """SpecError if neither a key nor an entry of one is called so."""
    if not _is_entry(name):
        _known(name, "")


def _may_be_null(name: str) -> bool:
    return type(None) in get_args(HINTS[name])


def _is_path(word: str, folder: Path) -> bool:
    """Folders of old runs have `key=value` in their names, and may be elsewhere; no key has a slash."""
    if word.startswith("--"):
        return False
    name, equals, _ = word.partition("=")
    return not equals or "/" in name or (folder / word).is_file()


def read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except OSError as error:
        raise MissingError(f"{path}: {error.strerror}", hint="hostler train config.yaml") from None
    except UnicodeDecodeError:
        raise SpecError("a config is text", hint="it should be UTF-8", where=str(path)) from None
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
    return "".join(f"{name}: {_written(_plain(getattr(config, name)))}\n" for name in KEYS)


def words_to_values(words: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Keys and values of what stands on a command line."""
    rest = list(words)
    while rest:
        name, texts = _next(rest)
        if _is_entry(name):
            values = [yaml12.load(text, name).value for text in texts or [""]]
            yield name, values if len(values) > 1 else values[0]
            continue
        _known(name, "")
        value = _typed(name, texts[0]) if len(texts) == 1 else texts
        yield name, _check(name, True if not texts and HINTS[name] is bool else value, "")


def _next(rest: list[str]) -> tuple[str, list[str]]:
    """The first key of these words with its values, which are taken away."""
    word = rest.pop(0)
    name, equals, text = word.partition("=")
    if equals:
        return name.lstrip("-"), [text]
    if not word.startswith("--"):
        raise SpecError(f"{word!r} is not key=value", hint="for example base_lr=0.1")
    texts = []
    while rest and not rest[0].startswith("--") and not _is_pair(rest[0]):
        texts.append(rest.pop(0))
    return word[2:], texts


def _is_pair(word: str) -> bool:
    """`loss` alone is a value, though there is a key of that name."""
    name, equals, _ = word.partition("=")
    return bool(equals) and (name in KEYS or _is_entry(name))


def _typed(name: str, text: str) -> Any:
    """A word as the key takes it: text stays what it is, whatever it looks like."""
    kinds = {HINTS[name], *get_args(HINTS[name])}
    if scalars.kind(text) == "null" and type(None) in kinds:
        return None
    if _origins(name):
        return yaml12.load(text, name).value if text.startswith("[") else text
    if text in ENDLESS and float in kinds and str not in kinds:
        return float(text)
    return text if not kinds & {int, float, bool} else scalars.parse_value(text)


def _origins(name: str) -> set[Any]:
    """Containers that a key's type allows: tuple, or Mapping."""
    kinds = (HINTS[name], *get_args(HINTS[name]))
    return {get_origin(kind) for kind in kinds} - {None, Union, types.UnionType}


def _written(value: Any) -> str:
    """JSON is YAML but for what has no end."""
    endless = isinstance(value, float) and math.isinf(value)
    if endless:
        return "-.inf" if value < 0 else ".inf"
    return scalars.for_yaml(json.dumps(value, ensure_ascii=False))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def _is_entry(name: str) -> bool:
    """`model_options.n_layer`: one entry of a map, as sweeps write nested parameters."""
    outer, dot, inner = name.partition(".")
    return bool(dot and inner) and outer in KEYS and Mapping in _origins(outer)


def _put(given: dict[str, Any], name: str, value: Any) -> None:
    if not _is_entry(name):
        given[name] = value
        return
    outer, *inner, last = name.split(".")
    inside = given[outer] = dict(_check(outer, given.get(outer) or {}, ""))
    for part in inner:
        known = inside.get(part)
        inside[part] = dict(known) if isinstance(known, Mapping) else {}
        inside = inside[part]
    inside[last] = value


def _check(name: str, value: Any, where: str) -> Any:
    _known(name, where)
    try:
        return _as(HINTS[name], value)
    except (TypeError, ValueError):
        raise SpecError(f"{name}: {value!r} is not {_named(HINTS[name])}", where=where) from None


def _known(name: str, where: str) -> None:
    if name not in KEYS:
        other = OTHER_NAMES.get(name)
        hint = (
            f"it is called {other} here"
            if other
            else did_you_mean(name, KEYS, "docs/trainer.md lists the keys")
        )
        raise SpecError(f"no key named {name!r}", hint, where=where)


def _as(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _as_one_of(inside, value)
    if origin is tuple:
        if isinstance(value, str):
            value = [part.strip() for part in value.strip("()[]").split(",") if part.strip()]
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return tuple(_as(inside[0], _read(inside[0], one)) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return _as_map(inside[1], value)
    if kind is type(None):
        if value is not None:
            raise TypeError
        return None
    return _as_plain(kind, value)


def _read(kind: Any, value: Any) -> Any:
    """A word of a list, as what it is."""
    return scalars.parse_value(value) if isinstance(value, str) and kind is not str else value


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


def _as_map(kind: Any, value: Any) -> dict[str, Any]:
    """A map, or a text that holds one, in YAML or in Python: parsed, never evaluated."""
    if isinstance(value, str):
        value = _python_map(value) or yaml12.load(value, "a map").value
    if not isinstance(value, Mapping):
        raise TypeError
    for name, one in value.items():
        if one is None and ":" in str(name):  # YAML takes a:1 for a name
            raise SpecError(f"{str(name)!r} has no value", hint="a space after the colon: {a: 1, b: 2}")
    return {str(name): _as(kind, one) for name, one in value.items()}


def _python_map(text: str) -> dict[Any, Any] | None:
    """`{'a': 'b'}` or `dict(a='b')`, as Python writes them."""
    try:
        made = ast.parse(text.strip(), mode="eval").body
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "dict":
            if made.args:
                return None
            return {keyword.arg: ast.literal_eval(keyword.value) for keyword in made.keywords}
        found = ast.literal_eval(made)
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, dict) else None


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
