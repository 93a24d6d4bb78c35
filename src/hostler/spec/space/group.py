"""Keys that hold several parameters: `LIST…`, tables to choose from, and `ZIP…`, rows advancing together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hostler.spec.space.distribution import DECIDING, read_form
from hostler.spec.space.entry import Branches, SpaceEntry, Table, Values, Zipped
from hostler.spec.space.fault import Fault, Path
from hostler.spec.space.value import plain, written

_LIST = re.compile(r"LIST(?![a-zA-Z]).*", re.DOTALL)
_ZIP = re.compile(r"ZIP(?![a-zA-Z]).*", re.DOTALL)


def is_list(word: str, value: Any) -> bool:
    """Whether a key begins with LIST as a word, or with these letters and holds tables."""
    tables = isinstance(value, (list, tuple)) and bool(value) and all(isinstance(v, Mapping) for v in value)
    return bool(_LIST.fullmatch(word)) or (word.startswith("LIST") and tables)


def is_zip(word: str, value: Any) -> bool:
    return bool(_ZIP.fullmatch(word)) and isinstance(value, Mapping)


def branches(name: str, value: Any, path: Path, read: Callable[[Any, Path], Table]) -> SpaceEntry:
    """The entry of a LIST: each of its tables read by `read`."""
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise Fault(
            path, f"{value!r} is not a list of tables", hint="for example [{optim: sgd}, {optim: adam}]"
        )
    return SpaceEntry(path, Branches(name, tuple(read(one, (*path, n)) for n, one in enumerate(value))))


def zipped(name: str, value: Mapping[str, Any], path: Path, prefix: str, seed: int) -> SpaceEntry:
    """The entry of a ZIP: columns of one length, as rows; equal ones once, unless a `count` asks for them."""
    columns = dict(_columns(value, path, prefix, seed))
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise Fault(
            path, f"lists of different length: {shown}", hint="they advance together: one length for all"
        )
    if not columns or 0 in lengths.values():
        raise Fault(path, "no values", hint="for example {width: [64, 128], depth: [2, 4]}")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    asked = any(isinstance(one, Mapping) and "count" in one for one in value.values())
    kept = rows if asked else list({written(row): row for row in rows}.values())
    return SpaceEntry(path, Zipped(name, tuple(kept)))


def _columns(
    table: Mapping[str, Any], path: Path, prefix: str, seed: int
) -> Iterator[tuple[str, list[Any] | range]]:
    for word, value in table.items():
        key, at = f"{prefix}{word}", (*path, str(word))
        if isinstance(value, (list, tuple, range)):
            yield key, [plain(one, (*at, n)) for n, one in enumerate(value)]
        elif isinstance(value, Mapping) and not any(w in value for w in DECIDING):
            yield from _columns(value, at, f"{key}.", seed)
        else:
            yield key, _column(key, value, at, seed)


def _column(key: str, value: Any, path: Path, seed: int) -> list[Any]:
    form = read_form(key, value, path, seed) if isinstance(value, Mapping) else None
    if not isinstance(form, Values):
        raise Fault(path, "not a list", hint="a list, or something with a count")
    return list(form.values)
