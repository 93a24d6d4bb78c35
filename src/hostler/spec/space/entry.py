"""The forms a parameter can have, as frozen data: what `reading.py` makes of a file, and others expand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.space.expression import Expression
from hostler.spec.space.fault import Path
from hostler.spec.space.ladder import Number

Flat = Mapping[str, Any]  # parameters by dotted key
When = tuple[tuple[str, tuple[Any, ...]], ...]  # every one of these keys has one of these values


@dataclass(frozen=True)
class Constant:
    key: str
    value: Any


@dataclass(frozen=True)
class Values:
    """A choice of one of these values; in a grid an axis."""

    key: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Range:
    """From low to high. `whole`: whole numbers; `step`: low, low + step …; `quantum`: multiples of it."""

    key: str
    low: Number
    high: Number
    log: bool = False
    whole: bool = False
    step: Number | None = None
    quantum: Number | None = None


@dataclass(frozen=True)
class Normal:
    """Drawn from a normal distribution; `log`: its logarithm is."""

    key: str
    mean: float
    deviation: float
    log: bool = False
    quantum: Number | None = None


@dataclass(frozen=True)
class Derived:
    """Computed from other parameters when a run's are known."""

    key: str
    expression: Expression


@dataclass(frozen=True)
class Zipped:
    """Parameters that advance together: row by row."""

    name: str
    rows: tuple[Flat, ...]


@dataclass(frozen=True)
class Branches:
    """A choice of one of several tables of parameters; in a grid one axis, made of their products."""

    name: str
    branches: tuple[Table, ...]


Form = Constant | Values | Range | Normal | Derived | Zipped | Branches


@dataclass(frozen=True)
class SpaceEntry:
    """A line of `parameters`: its place, its form, and its condition."""

    path: Path
    form: Form
    when: When = ()


Table = tuple[SpaceEntry, ...]


def holds(when: When, flat: Flat) -> bool:
    """Whether a condition is met; a parameter that is not there meets none."""
    return all(key in flat and any(same(flat[key], value) for value in values) for key, values in when)


def same(one: Any, other: Any) -> bool:
    """Equal, and not true for 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def keys_of(form: Form) -> set[str]:
    """Every key it may set."""
    if isinstance(form, Zipped):
        return set(form.rows[0])
    if isinstance(form, Branches):
        return {key for branch in form.branches for entry in branch for key in keys_of(entry.form)}
    return {form.key}


def forms(table: Table) -> Iterator[Form]:
    """All forms in it, those of branches too."""
    for entry in table:
        yield entry.form
        if isinstance(entry.form, Branches):
            for branch in entry.form.branches:
                yield from forms(branch)
