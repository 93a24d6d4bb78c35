"""The rows of a sweep on their way to a page: the first ones at once, the rest as they are read.

A line of JSON is a part of the table, by column. Rows that change later come with the stream of changes: a
page listens from the version that the first line names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from hostler.analysis.board import shape
from hostler.analysis.board.live import LiveSweep
from hostler.analysis.board.watcher import Watcher
from hostler.analysis.plain import dumps
from hostler.records.rows import Row

FIRST = 100  # rows that fill a screen
PART = 2500  # rows of a line after that
POLL = 0.01  # seconds between two looks at how far the reading has come


async def lines(watcher: Watcher, one: LiveSweep) -> AsyncIterator[bytes]:
    """Until all rows that the sweep has were sent, or it is no longer there."""
    version, sent, over = watcher.live.version, 0, False
    while not over and not watcher.over and watcher.live.sweeps.get(one.name) is one:
        over = one.whole  # asked before the rows are: none comes between
        rows = list(one.rows.values())
        if over and not sent:
            rows.sort(key=lambda row: row.index)
        while len(rows) - sent >= (PART if sent else FIRST) or (over and (sent < len(rows) or not sent)):
            part = rows[sent : sent + (PART if sent else FIRST)]
            last = over and sent + len(part) == len(rows)
            yield await asyncio.to_thread(_line, one, part, version, last)
            sent += len(part)
            if last:
                return
        if not over:
            await asyncio.sleep(POLL)


def _line(one: LiveSweep, rows: Sequence[Row], version: int, last: bool) -> bytes:
    total = max(one.expected - one.hidden, 0)
    return dumps({"version": version, "total": total, "last": last, **shape.table(rows)}) + b"\n"
