"""clouDL's `hyperparameters.json`: sections, one for each worker, whose parameters advance together.

Trial k of a section takes the kth value of every parameter: of a list (which begins again at its end), of
start + step · k, of start · factor^k, or a draw. Sections after the first inherit from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document, Path
from hostler.spec.formats.foreign import Foreign
from hostler.spec.space.value import written
from hostler.spec.units import counted

TOOL = "clouDL"

Column = dict[str, Any]


def is_it(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("hyperparameters"), list)
        and "iterations" in value
    )


def read(document: Document, stem: str) -> Foreign:
    value = document.value
    count = _iterations(document)
    maps = _sections(document)
    notes: list[str] = []
    tables = [_table(document, table, n, count, notes) for n, table in enumerate(maps)]
    sweep: dict[str, Any] = {"name": stem, "method": "grid"}
    places: dict[Path, Path] = {}
    if len(tables) == 1:
        sweep["parameters"] = tables[0]
        places = _places(("parameters",), tables[0], document, 0)
    else:
        shared = _shared(tables)
        sweep["parameters"] = shared
        sweep["sections"] = [{k: v for k, v in table.items() if k not in shared} for table in tables]
        places[("parameters",)] = ("hyperparameters", 0)
        for n, table in enumerate(tables):
            places |= _places(("sections", n), table, document, n)
    notes += [f"{key} is not carried over" for key in value if key not in _KNOWN]
    return Foreign(TOOL, sweep, count * len(tables), tuple(dict.fromkeys(notes)), places)


_METHODS = ("list", "step", "multiple", "uniform random", "uniform", "random", None)
_KNOWN = ("iterations", "hyperparameters", "helper")


def _iterations(document: Document) -> int:
    count = document.value["iterations"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1_000_000:
        raise SpecError(
            f"iterations: {count!r} is not a number of trials", where=document.where(("iterations",))
        )
    return count


def _sections(document: Document) -> list[dict[str, Any]]:
    sections: list[dict[str, Any]] = []
    for n, section in enumerate(document.value["hyperparameters"]):
        if not isinstance(section, Mapping):
            where = document.where(("hyperparameters", n))
            raise SpecError(f"hyperparameters[{n}]: {section!r} is not a table", where=where)
        sections.append({**(sections[0] if sections else {}), **section})
    if not sections:
        raise SpecError("hyperparameters: no sections", where=document.where(("hyperparameters",)))
    return sections


def _table(
    document: Document, section: dict[str, Any], n: int, count: int, notes: list[str]
) -> dict[str, Any]:
    """A section as ours: constants, and one ZIP of `count` rows."""
    constants: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for key, given in section.items():
        column = _column(document, n, key, given, count, notes)
        if column is None:
            constants[key] = {"value": given} if isinstance(given, Mapping) else given
        else:
            columns[key] = column
    if not columns and count > 1:
        if not constants:
            raise SpecError(
                f"hyperparameters[{n}]: no parameters", where=document.where(("hyperparameters", n))
            )
        key, value = next(iter(constants.items()))
        columns[key] = {"values": [constants.pop(key)], "count": count}
        notes.append(f"section {n + 1} has constants only: {counted(count, 'run')} of the same {key}={value}")
    return {**constants, **({"ZIP": columns} if columns else {})}


def _column(document: Document, n: int, key: str, given: Any, count: int, notes: list[str]) -> Column | None:
    """The values a parameter takes in turn; None for a constant."""
    if isinstance(given, Mapping) and "data" in given:
        if given.get("method") not in _METHODS:
            notes.append(f"{key}: the method {given.get('method')!r} is read as uniform random, as in clouDL")
        return _by_method(document, (_path(document, n, key)), given, count)
    if not isinstance(given, list):
        return None
    if len(given) == 2 and all(_is_number(one) for one in given):
        return {"uniform": sorted(given), "count": count}
    if not given:
        raise SpecError(f"{key}: an empty list: no values", where=document.where(_path(document, n, key)))
    notes.append(f"{key}: a list other than [low, high] is read as its values, in turn")
    return {"values": given, "count": count}


def _by_method(document: Document, path: Path, given: Mapping[str, Any], count: int) -> Column:
    method, data = given.get("method"), given["data"]
    numbers = isinstance(data, list) and len(data) == 2 and all(map(_is_number, data))
    if method == "list" and isinstance(data, list) and data:
        return {"values": data, "count": count}
    if method == "list" or not numbers:
        shape = "values" if method == "list" else "two numbers"
        raise SpecError(
            f"{path[-1]}: {data!r} is not a list of {shape}", where=document.where((*path, "data"))
        )
    if method == "step":
        return {"start": data[0], "step": data[1], "count": count}
    if method == "multiple":
        return {"start": data[0], "factor": data[1], "count": count}
    return {"uniform": sorted(data), "count": count}


def _shared(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Constants that are the same in every section."""
    first = tables[0]
    return {
        key: value
        for key, value in first.items()
        if key != "ZIP" and all(key in t and written(t[key]) == written(value) for t in tables)
    }


def _places(ours: Path, table: Mapping[str, Any], document: Document, n: int) -> dict[Path, Path]:
    own = {(*ours, key): _path(document, n, key) for key in table if key != "ZIP"}
    zipped = {(*ours, "ZIP", key): _path(document, n, key) for key in table.get("ZIP", ())}
    return {ours: ("hyperparameters", n), **own, **zipped}


def _path(document: Document, n: int, key: str) -> Path:
    """Where a section's parameter is written: with it, or with the first."""
    own = key in document.value["hyperparameters"][n]
    return ("hyperparameters", n if own else 0, key)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
