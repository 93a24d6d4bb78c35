"""A search space: how many runs, and the parameters of each, from its file and a number alone.

Pure and the same everywhere: workers compute a run's parameters from the sweep's spec and the run's index.
Repeats come one after the other as whole passes, so that more repeats add runs at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.space.entry import Normal, Range, forms
from hostler.spec.space.part import SpacePart
from hostler.spec.space.repeat import Repeat
from hostler.spec.space.value import written
from hostler.spec.space.walk import Choose, Dimension


@dataclass(frozen=True)
class Space:
    """`source` is what it was parsed from; the rest follows from it."""

    source: Mapping[str, Any]
    method: str
    count: int  # runs, repeats included; 0 for methods that learn
    repeat: Repeat
    notes: tuple[str, ...] = ()  # what a person should know before it starts
    parts: tuple[SpacePart, ...] = field(default=(), compare=False, repr=False)

    @property
    def learns(self) -> bool:
        return self.method not in ("grid", "random")

    @property
    def keys(self) -> tuple[str, ...]:
        """Every parameter there may be, by dotted key, in order."""
        return tuple(dict.fromkeys(key for part in self.parts for key in part.keys))

    @property
    def varying(self) -> tuple[str, ...]:
        """Parameters that are not the same in all runs."""
        if len(self.parts) > 1:
            return self.keys
        return tuple(key for key in self.keys if key in self.parts[0].varying or key == self.repeat.key)

    @property
    def scales(self) -> dict[str, bool]:
        """Parameters that are drawn from a range, and whether that is logarithmic."""
        drawn = [form for part in self.parts for form in forms(part.table)]
        return {form.key: form.log for form in drawn if isinstance(form, (Range, Normal))}

    def params(self, index: int) -> dict[str, Any]:
        """Parameters of run `index`; 0 is the first."""
        part, at, repeat = self._place(index)
        return self.repeat.applied(part.params(at), repeat)

    def cells(self) -> Iterator[dict[str, Any]]:
        """Parameters of all runs in order. They may share what is inside them: read only."""
        for repeat in range(self.repeat.count):
            for part in self.parts:
                if self.repeat.key:
                    yield from (self.repeat.applied(cell, repeat) for cell in part.cells())
                else:
                    yield from part.cells()

    def repeat_of(self, index: int) -> int:
        """Which repeat of its configuration a run is; 0 is the first."""
        return self._place(index)[2]

    def occurrence(self, index: int) -> int:
        """Which run with these very parameters it is: 0, 1 …"""
        repeat = 0 if self.repeat.key else self.repeat_of(index)
        return self._twins.get(index % (self.count // self.repeat.count), 0) * self.repeat.count + repeat

    @cached_property
    def _twins(self) -> Mapping[int, int]:
        """Runs of one pass whose configuration came before, and how often; only where that is possible."""
        if len(self.parts) == 1 and not self.parts[0].may_repeat:
            return {}
        seen: Counter[str] = Counter()
        twins = {}
        for index, cell in enumerate(cell for part in self.parts for cell in part.cells()):
            text = written(cell)
            if seen[text]:
                twins[index] = seen[text]
            seen[text] += 1
        return twins

    def section_of(self, index: int) -> int:
        """The section a run belongs to, from 1; 0 where there are none."""
        if len(self.parts) == 1:
            return 0
        return 1 + self.parts.index(self._place(index)[0])

    def dimensions(self) -> tuple[Dimension, ...]:
        """Every choice there may be to make, for methods that learn."""
        return self.parts[0].dimensions()

    def ask(self, choose: Choose) -> tuple[dict[str, Any], dict[str, Any]]:
        """(choices by dimension's name, parameters): `choose` is asked for each dimension that is active. The
        parameters are those of the first repeat; `fill` makes those of the others."""
        chosen: dict[str, Any] = {}

        def remembered(dimension: Dimension) -> Any:
            chosen[dimension.name] = choose(dimension)
            return chosen[dimension.name]

        return chosen, self.repeat.applied(self.parts[0].walked(remembered), 0)

    def fill(self, chosen: Mapping[str, Any], repeat: int = 0) -> dict[str, Any]:
        """Parameters of choices that `ask` made."""
        return self.repeat.applied(self.parts[0].walked(lambda dimension: chosen[dimension.name]), repeat)

    def _place(self, index: int) -> tuple[SpacePart, int, int]:
        """(part, index in it, repeat)."""
        if not 0 <= index < self.count:
            raise UsageError(f"run {index} does not exist: the space has {self.count}")
        repeat, at = divmod(index, self.count // self.repeat.count)
        for part in self.parts:
            if at < part.count:
                break
            at -= part.count
        return part, at, repeat
