"""Several segments of one sweep as one, with the rows that count, in order: what a reader works on."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import nan
from typing import Any

from hostler.records.series import columns, segments
from hostler.records.series.columns import Blocks, Column, values
from hostler.records.series.segments import PARTS, STEPS, Segment, Sparse


def merge(sweep: str, parts: Sequence[Segment], **facts: Any) -> list[bytes | memoryview]:
    """All rows of all of them, one after the other, as the pieces of one segment for a cache: curves are
    large, and are not copied for it. `facts` go into the header."""
    merging = _Merging(parts, columns.as_text)
    header = _header(sweep, merging) | {"tracks": merging.tracks(), **facts}
    return [segments.head(header), *merging.blocks.parts]


def table(sweep: str, parts: Sequence[Segment]) -> Segment:
    """The same without curves, for a reader in this process."""
    merging = _Merging(parts)
    header = _header(sweep, merging) | {"tracks": []}
    return Segment(header, memoryview(b"".join(merging.blocks.parts)))


def _header(sweep: str, merging: _Merging) -> dict[str, Any]:
    parts = merging.parts
    return {
        "format": segments.FORMAT,
        "token": os.urandom(8).hex(),
        "sweep": sweep,
        "rows": sum(part.rows for part in parts),
        "run": merging.column([(part.header["run"], part.rows) for part in parts]),
        "k": merging.column([(part.header["k"], part.rows) for part in parts]),
        "apart": [base + n for base, part in merging.based() for n in part.header["apart"]],
        "end": merging.tables("end"),
        "params": merging.tables("params"),
        "totals": merging.totals(),
    }


class _Merging:
    def __init__(
        self, parts: Sequence[Segment], form: Callable[[Column], Column] = lambda column: column
    ) -> None:
        self._form = form
        self.parts, self.blocks = parts, Blocks()
        self._bases = [0]
        for part in parts:
            self._bases.append(self._bases[-1] + part.rows)

    def based(self) -> list[tuple[int, Segment]]:
        """Each, with how many rows come before it."""
        return list(zip(self._bases, self.parts, strict=False))

    def column(self, found: Sequence[tuple[Column, int]], of: Sequence[Segment] | None = None) -> Column:
        """Columns of so many rows each, as one."""
        parts = of or self.parts
        kinds = {column[0] for column, _ in found}
        if kinds in ({"f"}, {"i"}):
            cut = [_cut(c, part) for (c, _), part in zip(found, parts, strict=True)]
            return self.blocks.raw(kinds.pop(), cut)
        if kinds == {"all"} and len({(type(c[1]), c[1]) for c, _ in found}) == 1:
            return found[0][0]
        cells = [values(c, rows, part.blocks) for (c, rows), part in zip(found, parts, strict=True)]
        return self._form(self.blocks.column(list(chain.from_iterable(cells))))

    def tables(self, name: str) -> dict[str, Sparse]:
        every = dict.fromkeys(key for part in self.parts for key in part.header[name])
        return {key: self._sparse(name, key) for key in every}

    def _sparse(self, name: str, key: str) -> Sparse:
        there = [(base, part) for base, part in self.based() if key in part.header[name]]
        tables = [part.header[name][key] for _, part in there]
        found = [
            (t[1], part.rows if t[0] is None else len(t[0]))
            for t, (_, part) in zip(tables, there, strict=True)
        ]
        rows = self._rows([(base, part, t[0]) for t, (base, part) in zip(tables, there, strict=True)])
        return [rows, self.column(found, [part for _, part in there])]

    def _rows(self, found: Sequence[tuple[int, Segment, list[int] | None]]) -> list[int] | None:
        """Which rows of all these are; None: every one."""
        if len(found) == len(self.parts) and all(rows is None for _, _, rows in found):
            return None
        own = ((base, range(part.rows) if rows is None else rows) for base, part, rows in found)
        return [base + n for base, rows in own for n in rows]

    def totals(self) -> dict[str, Any]:
        return {
            name: self._total(name)
            for name in dict.fromkeys(name for part in self.parts for name in part.header["totals"])
        }

    def _total(self, name: str) -> dict[str, Any]:
        there = [(base, part) for base, part in self.based() if name in part.header["totals"]]
        found = [(base, part, part.header["totals"][name]) for base, part in there]
        rows = self._rows([(base, part, total["rows"]) for base, part, total in found])
        noted = {p: [_noted(total, p, part) for _, part, total in found] for p in (*PARTS, *STEPS)}
        return {"rows": rows, **{p: self.blocks.raw("f", cut) for p, cut in noted.items()}}

    def tracks(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, ...], list[tuple[int, Segment, Mapping[str, Any]]]] = {}
        for base, part in self.based():
            for group in part.header["tracks"]:
                groups.setdefault(tuple(group["names"]), []).append((base, part, group))
        return [self._group(names, found) for names, found in groups.items()]

    def _group(
        self, names: tuple[str, ...], found: list[tuple[int, Segment, Mapping[str, Any]]]
    ) -> dict[str, Any]:
        def joined(kind: str, of: list[tuple[Column, Segment]]) -> Column:
            return self.blocks.raw(kind, [_cut(column, part) for column, part in of])

        return {
            "names": list(names),
            "rows": [base + n for base, _, group in found for n in group["rows"]],
            "counts": [count for _, _, group in found for count in group["counts"]],
            "steps": joined("i", [(group["steps"], part) for _, part, group in found]),
            "times": joined("f", [(group["times"], part) for _, part, group in found]),
            "values": [
                joined("f", [(group["values"][n], part) for _, part, group in found])
                for n in range(len(names))
            ],
        }


def _noted(total: Mapping[str, Any], name: str, part: Segment) -> memoryview:
    """A part of a metric's totals; NaN for all rows where an older hostler has not noted it."""
    if name in total:
        return _cut(total[name], part)
    return memoryview(array("d", [nan] * total[PARTS[0]][2]).tobytes())


def _cut(column: Column, part: Segment) -> memoryview:
    return part.blocks[column[1] : column[1] + 8 * column[2]]
