"""Builds a configuration of a table choice by choice, as random search and learning methods see a space.

`choose` is asked for each dimension that is active, in a fixed order: first what conditions depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from hostler.frozen import dataclass
from hostler.spec.space.entry import (
    Branches,
    Constant,
    Derived,
    Normal,
    Range,
    SpaceEntry,
    Table,
    Values,
    Zipped,
    holds,
)
from hostler.spec.space.ladder import Number


@dataclass(frozen=True)
class Dimension:
    """A choice to make. `name` is unique in the space; `key` is the parameter it sets ('' if several)."""

    name: str
    kind: Literal["float", "int", "choice"]
    key: str = ""
    low: Number = 0
    high: Number = 0
    log: bool = False
    step: Number | None = None
    choices: tuple[Any, ...] = ()  # of a choice; of one among tables or rows: their numbers
    form: Range | Normal | None = None


Choose = Callable[[Dimension], Any]


def walk(table: Table, choose: Choose, prefix: str = "") -> dict[str, Any]:
    """The flat parameters that these choices make; derived ones are still expressions."""
    flat: dict[str, Any] = {}
    for entry in table:
        if holds(entry.when, flat):
            flat.update(_chosen(entry, choose, prefix))
    return flat


def dimensions(table: Table, prefix: str = "") -> Iterator[Dimension]:
    """Every choice there may be to make."""
    for entry in table:
        dimension = _dimension(entry, prefix)
        if dimension:
            yield dimension
        if isinstance(entry.form, Branches):
            for n, branch in enumerate(entry.form.branches):
                yield from dimensions(branch, f"{prefix}{entry.form.name}/{n}/")


def _chosen(entry: SpaceEntry, choose: Choose, prefix: str) -> dict[str, Any]:
    form, dimension = entry.form, _dimension(entry, prefix)
    if isinstance(form, Constant):
        return {form.key: form.value}
    if isinstance(form, Derived):
        return {form.key: form.expression}
    if isinstance(form, Zipped):
        return dict(form.rows[choose(dimension) if dimension else 0])
    if isinstance(form, Branches):
        at = choose(dimension) if dimension else 0
        return walk(form.branches[at], choose, f"{prefix}{form.name}/{at}/")
    assert dimension is not None
    return {form.key: choose(dimension)}


def _dimension(entry: SpaceEntry, prefix: str) -> Dimension | None:
    """The choice an entry asks for; None if it leaves none."""
    form = entry.form
    if isinstance(form, (Zipped, Branches)):
        count = len(form.rows if isinstance(form, Zipped) else form.branches)
        return Dimension(prefix + form.name, "choice", choices=tuple(range(count))) if count > 1 else None
    if isinstance(form, (Constant, Derived)):
        return None
    if isinstance(form, Values):
        return _values(form, prefix)
    if isinstance(form, Normal):
        return Dimension(prefix + form.key, "float", form.key, form=form)
    kind: Literal["int", "float"] = "int" if form.whole else "float"
    return Dimension(prefix + form.key, kind, form.key, form.low, form.high, form.log, form.step, form=form)


def _values(form: Values, prefix: str) -> Dimension:
    if isinstance(form.values, range) and form.values.step > 0:
        low, high, step = form.values[0], form.values[-1], form.values.step
        ends = Range(form.key, low, high, whole=True, step=step)
        return Dimension(prefix + form.key, "int", form.key, low, high, step=step, form=ends)
    return Dimension(prefix + form.key, "choice", form.key, choices=tuple(form.values))
