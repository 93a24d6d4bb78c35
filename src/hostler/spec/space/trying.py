"""Tries a file's space by making runs of it: finds expressions without a value, conditions never met.

For people who submit a file: workers take a space as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from hostler.spec.scalars import text
from hostler.spec.space.entry import (
    Branches,
    Constant,
    Derived,
    Form,
    Range,
    SpaceEntry,
    Table,
    Values,
    Zipped,
    keys_of,
    same,
)
from hostler.spec.space.fault import Fault
from hostler.spec.space.part import SpacePart, Uncomputable
from hostler.spec.space.walk import Dimension, dimensions

MOST = 2000  # runs that are tried; of more, so many from all over


def check(parts: tuple[SpacePart, ...], method: str) -> None:
    """Fault, where one of its runs cannot be made, a condition is never met, or nothing can be learned."""
    if method == "cmaes":
        _check_ranges(parts[0].table)
    if len(parts) == 1:  # a section may leave out what a condition waits for
        _check_conditions(parts[0].table)
    for part in parts:
        if any(isinstance(entry.form, Derived) for entry in entries(part.table)):
            _check_expressions(part)


def entries(table: Table) -> Iterator[SpaceEntry]:
    """All of a table, those of branches too."""
    for entry in table:
        yield entry
        if isinstance(entry.form, Branches):
            for branch in entry.form.branches:
                yield from entries(branch)


def common_ranges(table: Table) -> set[str]:
    """Numbers between two ends that every run has."""
    always = {e.form.key for e in table if not e.when and isinstance(e.form, (Range, Values))}
    return always & {dimension.key for dimension in dimensions(table) if dimension.kind != "choice"}


def _check_ranges(table: Table) -> None:
    found = common_ranges(table)
    if len(found) < 2:  # its sampler would draw that one at random, too
        there = f"this space has {'only ' + found.pop() if found else 'none'}"
        raise Fault(
            ("parameters",),
            f"cmaes needs two or more ranges that all runs have, and {there}",
            hint="use method: tpe, which searches choices, conditions and single ranges, too",
        )


def _check_conditions(table: Table) -> None:
    for entry in table:
        for key, values in entry.when:
            forms = [space_entry.form for space_entry in table if key in keys_of(space_entry.form)]
            for value in values:
                if not any(_can_be(form, key, value) for form in forms):
                    raise Fault((*entry.path, "when"), f"{key} is never {text(value)}", _choices(forms, key))
        if isinstance(entry.form, Branches):
            for branch in entry.form.branches:
                _check_conditions(branch)


def _can_be(form: Form, key: str, value: Any) -> bool:
    if isinstance(form, Range):
        return _is_number(value) and form.low <= value <= form.high
    known = _known(form, key)
    return known is None or any(same(one, value) for one in known)


def _known(form: Form, key: str) -> list[Any] | None:
    """The values a parameter may have by this form; None if they are not a list of some."""
    if isinstance(form, Constant):
        return [form.value]
    if isinstance(form, Values):
        return list(form.values)
    if isinstance(form, Zipped):
        return [row[key] for row in form.rows if key in row]
    if isinstance(form, Branches):
        inner = [
            _known(entry.form, key)
            for branch in form.branches
            for entry in branch
            if key in keys_of(entry.form)
        ]
        return None if None in inner else [value for some in inner for value in some or ()]
    return None


def _choices(forms: list[Form], key: str) -> str:
    found = [value for form in forms for value in _known(form, key) or ()]
    return f"its values: {', '.join(text(one) for one in found[:8])}" if found else "see its range"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_expressions(part: SpacePart) -> None:
    try:
        for _ in _tried(part):
            pass
    except Uncomputable as error:
        path = next(e.path for e in entries(part.table) if error.key in keys_of(e.form))
        raise Fault((*path, "expr"), error.why, "for one of its runs") from None


def _tried(part: SpacePart) -> Iterator[dict[str, Any]]:
    if part.count:
        yield from (part.params(index) for index in range(0, part.count, -(-part.count // MOST)))
    else:  # a search chooses as it goes: the ends of all ranges
        yield from (part.walked(partial(_end, end=end)) for end in (0, -1))


def _end(one: Dimension, end: int) -> Any:
    return one.choices[end] if one.kind == "choice" else (one.low, one.high)[end]
