"""A table of parameters under one method: a whole space, or a section of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.params import nest
from hostler.spec.space import draw
from hostler.spec.space.distribution import drawn
from hostler.spec.space.entry import (
    Constant,
    Derived,
    Normal,
    Range,
    SpaceEntry,
    Table,
    Zipped,
    forms,
    keys_of,
)
from hostler.spec.space.expression import Expression, lookup
from hostler.spec.space.grid import Grid
from hostler.spec.space.value import written
from hostler.spec.space.walk import Choose, Dimension, dimensions, walk


class Uncomputable(UsageError):
    """A run's expression has no value."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}", hint="in its expr")
        self.key, self.why = key, why


@dataclass(frozen=True)
class SpacePart:
    """`count` configurations: the first cells of a grid, or cells in random order; else draws."""

    table: Table
    grid: Grid | None
    shuffled: bool
    seed: int
    count: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for entry in self.table for key in sorted(keys_of(entry.form)))

    @property
    def varying(self) -> frozenset[str]:
        return frozenset(key for entry in self.table if not _fixed(entry) for key in keys_of(entry.form))

    @property
    def may_repeat(self) -> bool:
        """Whether a configuration can be there more than once: rows that were asked for, rounded draws."""
        return any(
            (isinstance(form, Zipped) and len({written(row) for row in form.rows}) < len(form.rows))
            or (isinstance(form, (Range, Normal)) and form.quantum is not None)
            for form in forms(self.table)
        )

    def params(self, index: int) -> dict[str, Any]:
        return self._finished(self._flat(index))

    def cells(self) -> Iterator[dict[str, Any]]:
        if self.grid is None or self.shuffled:
            return (self.params(index) for index in range(self.count))
        found = islice(self.grid.cells(), self.count)
        return found if self._is_plain else (self._finished(cell) for cell in found)

    def walked(self, choose: Choose) -> dict[str, Any]:
        return self._finished(walk(self.table, choose))

    def dimensions(self) -> tuple[Dimension, ...]:
        return tuple(dimensions(self.table))

    @property
    def _is_plain(self) -> bool:
        """Whether a cell of the grid is a run's parameters as it is."""
        return not any("." in key for key in self.keys) and not any(
            isinstance(form, Derived) for form in forms(self.table)
        )

    def _flat(self, index: int) -> dict[str, Any]:
        if self.grid is None:
            return walk(self.table, lambda dimension: self._drawn(dimension, index))
        at = draw.shuffled(index, self.grid.size, self.seed) if self.shuffled else index
        return self.grid.cell(at)

    def _drawn(self, dimension: Dimension, index: int) -> Any:
        bits = draw.bits(self.seed, index, dimension.name)
        if dimension.form is not None:
            return drawn(dimension.form, bits)
        return dimension.choices[draw.below(bits, len(dimension.choices))]

    def _finished(self, flat: dict[str, Any]) -> dict[str, Any]:
        waiting = {key: value for key, value in flat.items() if isinstance(value, Expression)}
        if waiting:
            flat = _computed(flat, waiting)
        return nest(flat) if any("." in key for key in flat) else flat


def _computed(flat: dict[str, Any], waiting: dict[str, Expression]) -> dict[str, Any]:
    """With expressions replaced by their values; one whose parameters are not there is not there either."""
    known = {key: value for key, value in flat.items() if key not in waiting}
    while ready := [
        key for key, expression in waiting.items() if all(lookup(name, known) for name in expression.names)
    ]:
        for key in ready:
            try:
                known[key] = waiting.pop(key).value(known)
            except ValueError as error:
                raise Uncomputable(key, str(error)) from None
    return {key: known[key] for key in flat if key in known}


def _fixed(entry: SpaceEntry) -> bool:
    return isinstance(entry.form, Constant) and not entry.when
