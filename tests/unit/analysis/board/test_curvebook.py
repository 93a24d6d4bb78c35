"""Curves on their way to a page: as columns of numbers, by step, time or another metric."""

from __future__ import annotations

import json
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest

from hostler.analysis.board import curvebook
from hostler.analysis.board.curvebook import CurveBook
from hostler.records.rows import Row, rows
from hostler.records.series.points import Point
from seen_world import Seen

BEGUN = 1.79e9


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return Seen(tmp_path / "store")


def ended(seen: Seen, curves: list[list[Point]]) -> list[Row]:
    job = seen.submit("s", [{"lr": n} for n in range(len(curves))])
    for index, points in enumerate(curves):
        seen.claim(job, index)
        seen.end(job, index, "done", seen.curve(job, index, points))
    return rows(seen.store, ["s"])


def unpacked(data: bytes) -> tuple[dict[str, Any], list[list[float]]]:
    """The header, and the columns behind it."""
    size = struct.unpack_from("<I", data)[0]
    head = json.loads(data[4 : 4 + size])
    numbers = array("d", data[4 + size :])
    columns, at = [], 0
    for _, count, _ in head["curves"]:
        for _ in range(2):
            columns.append(list(numbers[at : at + count]))
            at += count
    assert at == len(numbers)
    return head, columns


def test_packed_curves_hold_places_and_values_of_each_run(seen: Seen) -> None:
    found = ended(
        seen,
        [
            [Point(s, BEGUN + s, {"loss": s / 2}) for s in range(1, 4)],
            [Point(9, BEGUN, {"loss": float("nan")})],
        ],
    )
    data = CurveBook(seen.store).packed(found, "loss", "step")
    head, columns = unpacked(data)
    assert [one[1:] for one in head["curves"]] == [[3, 3], [1, 1]]
    assert columns[:3] == [[1, 2, 3], [0.5, 1, 1.5], [9]]
    assert columns[3][0] != columns[3][0]
    assert (4 + struct.unpack_from("<I", data)[0]) % 8 == 0  # a page reads them without copying


def test_curve_lies_along_time_or_the_newest_epoch(seen: Seen) -> None:
    points = [
        Point(s, BEGUN + 10 * s, {"loss": 1.0, **({"epoch": s / 2} if s % 2 == 0 else {})})
        for s in range(1, 6)
    ]
    found = ended(seen, [points])
    book = CurveBook(seen.store)
    assert unpacked(book.packed(found, "loss", "time"))[1][0] == [BEGUN + 10 * s for s in range(1, 6)]
    epochs = unpacked(book.packed(found, "loss", "epoch"))[1][0]
    assert epochs[0] != epochs[0]  # before the first epoch
    assert epochs[1:] == [1, 1, 2, 2]


def test_longer_curve_is_thinned_and_keeps_its_extremes(seen: Seen) -> None:
    count = curvebook.LONG + 500
    points = [Point(s, BEGUN + s, {"loss": 100.0 if s == 777 else (s % 7) / 7}) for s in range(count)]
    found = ended(seen, [points])
    head, columns = unpacked(CurveBook(seen.store).packed(found, "loss", "step"))
    assert head["curves"][0][2] == count
    assert len(columns[0]) <= curvebook.LONG * 4 / 3 + 2
    assert (777, 100.0) in zip(*columns, strict=True)


def test_unknown_metric_has_no_curve(seen: Seen) -> None:
    found = ended(seen, [[Point(1, BEGUN, {"loss": 1.0})]])
    assert unpacked(CurveBook(seen.store).packed(found, "none", "step"))[0]["curves"] == []


def test_unreadable_run_is_named_and_costs_no_other(seen: Seen, tmp_path: Path) -> None:
    found = ended(seen, [[Point(1, BEGUN, {"loss": 1.0})], [Point(1, BEGUN, {"loss": 2.0})]])
    for path in (tmp_path / "store/runs" / found[0].id / "metrics").iterdir():
        path.write_bytes(b"?")
    head, columns = unpacked(CurveBook(seen.store).packed(found, "loss", "step"))
    assert list(head["trouble"]) == [found[0].id]
    assert columns == [[1], [2]]


def test_book_keeps_a_bounded_number_of_points(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curvebook, "KEPT", 25)
    found = ended(seen, [[Point(s, BEGUN, {"loss": 1.0}) for s in range(10)] for _ in range(5)])
    book = CurveBook(seen.store)
    book.packed(found, "loss", "step")
    assert [key[0] for key in book._ended] == [row.id for row in found[-2:]]
    assert book._size == 20
