"""The rows of a sweep on their way to a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from hostler.analysis.board import replies
from hostler.analysis.board.live import LiveSweep
from hostler.analysis.board.watcher import Watcher
from hostler.records.rows import Row
from hostler.store.memory import MemoryStore

T = TypeVar("T")


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own: a browser that another test drives has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def row(index: int) -> Row:
    return Row(f"{index:07d}-s-x", f"s/{index}", "s", index, "done", {"lr": index})


def sweep(indices: list[int], *, whole: bool, expected: int = 0) -> LiveSweep:
    one = LiveSweep("s", whole=whole, expected=expected or len(indices))
    one.rows = {found.id: found for found in map(row, indices)}
    return one


@pytest.fixture
def watcher() -> Watcher:
    return Watcher(MemoryStore(), near=True)


def read(line: bytes) -> dict[str, Any]:
    return dict(json.loads(line))


async def _all(watcher: Watcher, one: LiveSweep) -> list[dict[str, Any]]:
    watcher.live.sweeps[one.name] = one
    return [read(line) async for line in replies.lines(watcher, one)]


def indices(lines: list[dict[str, Any]]) -> list[int]:
    cells = [line["fields"]["index"] for line in lines]
    return [
        n
        for line, cell in zip(lines, cells, strict=True)
        for n in cell.get("each", [cell.get("all")] * line["count"])
    ]


def test_first_rows_are_a_line_and_all_come_in_order(watcher: Watcher) -> None:
    many = replies.FIRST + 2 * replies.PART + 7
    found = waited_for(_all(watcher, sweep(list(reversed(range(many))), whole=True)))
    assert [line["count"] for line in found] == [replies.FIRST, replies.PART, replies.PART, 7]
    assert [line["last"] for line in found] == [False, False, False, True]
    assert indices(found) == list(range(many))


def test_rows_stream_during_the_read_with_a_known_total(
    watcher: Watcher,
) -> None:
    one = sweep(list(range(replies.FIRST + 20)), whole=False, expected=5000)
    one.hidden = 3
    watcher.live.sweeps[one.name] = one

    async def reading() -> list[dict[str, Any]]:
        stream = replies.lines(watcher, one)
        got = [read(await stream.__anext__())]
        for index in range(replies.FIRST + 20, replies.FIRST + 50):
            one.rows[row(index).id] = row(index)
        one.whole = True
        return got + [read(line) async for line in stream]

    found = waited_for(reading())
    assert [line["count"] for line in found] == [replies.FIRST, 50]
    assert {line["total"] for line in found} == {4997}
    assert indices(found) == list(range(replies.FIRST + 50))


def test_the_first_line_alone_brings_the_overview(watcher: Watcher) -> None:
    one = sweep(list(range(replies.FIRST + 1)), whole=True)
    watcher.live.sweeps[one.name] = one

    async def reading() -> list[dict[str, Any]]:
        return [read(line) async for line in replies.lines(watcher, one, lambda: {"born": "now"})]

    assert [line["overview"] for line in waited_for(reading())] == [{"born": "now"}, {}]


@pytest.mark.parametrize("count", [0, 1, replies.FIRST, replies.FIRST + replies.PART])
def test_the_last_line_says_so_however_many_rows_there_are(watcher: Watcher, count: int) -> None:
    found = waited_for(_all(watcher, sweep(list(range(count)), whole=True)))
    assert [line["last"] for line in found] == [False] * (len(found) - 1) + [True]
    assert sum(line["count"] for line in found) == count


def test_a_dashboard_that_ends_ends_the_lines(watcher: Watcher) -> None:
    watcher.close()
    assert waited_for(_all(watcher, sweep([1], whole=False))) == []


def test_sweep_deleted_during_the_read_ends_the_lines(watcher: Watcher) -> None:
    one = sweep(list(range(replies.FIRST)), whole=False)

    async def deleted() -> int:
        watcher.live.sweeps[one.name] = one
        stream = replies.lines(watcher, one)
        await stream.__anext__()
        del watcher.live.sweeps[one.name]
        return len([line async for line in stream])

    assert waited_for(asyncio.wait_for(deleted(), 60)) == 0
