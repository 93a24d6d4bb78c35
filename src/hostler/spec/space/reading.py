"""`parameters` as a person writes them, to entries; every mistake is a Fault at its key.

A table under a name is a range, a row of values, an expression … if it holds one of the words that say so,
and a table of nested parameters otherwise. `LIST…` holds a list of tables, `ZIP…` a table of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hostler.spec.nearest import did_you_mean
from hostler.spec.space import group
from hostler.spec.space.distribution import DECIDING, WORDS, read_form
from hostler.spec.space.entry import Constant, Entry, Table, Values, When
from hostler.spec.space.fault import Fault, Path
from hostler.spec.space.order import ordered
from hostler.spec.space.value import distinct, plain

_DEEPEST = 50


def read_table(parameters: Any, seed: int, path: Path = (), prefix: str = "") -> Table:
    """The entries of a table, each key once, what others depend on first."""
    if not isinstance(parameters, Mapping):
        raise Fault(path, f"{parameters!r} is not a table (key: value)")
    return ordered(list(_entries(parameters, path, prefix, seed)))


def _entries(table: Mapping[str, Any], path: Path, prefix: str, seed: int) -> Iterator[Entry]:
    if len(path) > _DEEPEST:
        raise Fault(path, f"nested more than {_DEEPEST} deep")
    for given, value in table.items():
        word = str(given)
        key, at = f"{prefix}{word}", (*path, word)
        if not word:
            raise Fault(path, "a parameter without a name")
        if group.is_list(word, value):
            yield group.branches(key, value, at, lambda one, place: read_table(one, seed, place, prefix))
        elif group.is_zip(word, value):
            yield group.zipped(key, value, at, prefix, seed)
        elif isinstance(value, Mapping) and not _is_form(value, at):
            yield from _nested(key, value, at, seed)
        else:
            yield _entry(key, value, at, seed)


def _nested(key: str, value: Mapping[str, Any], path: Path, seed: int) -> Iterator[Entry]:
    if not value:
        raise Fault(path, "an empty table", hint="give it keys, or leave it out")
    yield from _entries(value, path, f"{key}.", seed)


def _is_form(table: Mapping[str, Any], path: Path) -> bool:
    """Whether a table says how values come about; an error if it says that and more."""
    said = [word for word in table if word in DECIDING]
    if not said:
        return False
    for word in table:
        if word not in WORDS:
            hint = did_you_mean(str(word), WORDS) or f"for a nested parameter write {path[-1]}.{said[0]}"
            raise Fault((*path, str(word)), f"does not go together with {said[0]}", hint)
    return True


def _entry(key: str, value: Any, path: Path, seed: int) -> Entry:
    if isinstance(value, Mapping):
        form = read_form(key, value, path, seed)
        if isinstance(form, Values):
            form = _axis(key, form.values)
        return Entry(path, form, _when(value.get("when"), path))
    if not isinstance(value, (list, tuple, range)):
        return Entry(path, Constant(key, plain(value, path)))
    if not value:
        raise Fault(path, "an empty list: no values", hint="give it values, or leave it out")
    return Entry(path, _axis(key, [plain(one, (*path, n)) for n, one in enumerate(value)]))


def _axis(key: str, values: Any) -> Values | Constant:
    found = values if isinstance(values, range) else distinct(values)
    return Values(key, found) if len(found) > 1 else Constant(key, found[0])


def _when(given: Any, path: Path) -> When:
    if given is None:
        return ()
    at = (*path, "when")
    if not isinstance(given, Mapping) or not given:
        raise Fault(at, f"{given!r} is not a condition", hint="like when: {optim: sgd}")
    return tuple((key, _allowed(value, at)) for key, value in _flat(given))


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _allowed(value: Any, path: Path) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not values:
        raise Fault(path, "an empty list is never met")
    return tuple(plain(one, path) for one in values)
