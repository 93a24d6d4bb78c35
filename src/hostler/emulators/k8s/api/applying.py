"""Server-side apply: what a manager applied before and leaves out now goes; where two differ is a conflict.

Pure over what each manager has applied.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hostler.emulators.k8s.api.patching import key_of, strategic
from hostler.emulators.k8s.storage import Obj

Path = tuple[str, ...]
_IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}


def conflicts(applied: Mapping[str, Obj], manager: str, wanted: Obj) -> list[tuple[str, str]]:
    """(manager, field) of what others applied with another value."""
    mine = dict(leaves(wanted))
    found = []
    for other, theirs in applied.items():
        if other == manager:
            continue
        for path, value in leaves(theirs):
            if path in mine and mine[path] != value and path not in _IDENTITY:
                found.append((other, "." + ".".join(path)))
    return found


def apply(current: Obj, before: Obj | None, wanted: Obj, others: list[Obj]) -> Obj:
    """The object with what is wanted, without what this manager alone had wanted before."""
    found = copy.deepcopy(current)
    kept = {path for one in [wanted, *others] for path, _ in leaves(one)}
    for path, _ in leaves(before or {}):
        if path not in kept and path not in _IDENTITY:
            _drop(found, list(path))
    merged: Obj = strategic(found, wanted)
    return merged


def leaves(thing: Any, at: Path = (), field: str = "") -> Iterator[tuple[Path, Any]]:
    """Every value with its path; entries of named lists by their names."""
    if isinstance(thing, dict) and thing:
        for key, value in thing.items():
            yield from leaves(value, (*at, key), key)
    elif isinstance(thing, list) and (key := key_of(field, thing)):
        for one in thing:
            yield from leaves(one, (*at, f"{key}={one[key]}"))
    elif at:
        yield at, thing


def _drop(thing: Any, path: list[str]) -> None:
    """Take one value out, and the parts of named lists that have nothing but their name left."""
    part, rest = path[0], path[1:]
    if isinstance(thing, list):
        key, _, name = part.partition("=")
        for one in [one for one in thing if str(one.get(key)) == name]:
            if rest:
                _drop(one, rest)
            if set(one) <= {key}:
                thing.remove(one)
    elif isinstance(thing, dict) and part in thing:
        if rest and isinstance(thing[part], dict | list):
            _drop(thing[part], rest)
            if thing[part] in ({}, []):
                del thing[part]
        elif not rest:
            del thing[part]
