"""Answers requests as JSON; hostler's errors become messages that the page shows."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hostler.analysis.board import shape
from hostler.analysis.board.live import FIRST, LiveSweep
from hostler.analysis.board.watcher import Watcher
from hostler.analysis.plain import dumps
from hostler.errors import HostlerError, MissingError, UsageError
from hostler.records.rows import Row

_SPAN = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)


class Indices:
    """Indices as a query names them, `0-99,105`: kept as spans, so that a wide one takes no memory."""

    def __init__(self, words: str) -> None:
        spans: list[tuple[int, int]] = []
        for begin, end in sorted(map(_span, filter(None, words.split(",")))):
            if spans and begin <= spans[-1][1] + 1:
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((begin, end))
        self._begins = [begin for begin, _ in spans]
        self._ends = [end for _, end in spans]

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self._begins, index) - 1
        return place >= 0 and index <= self._ends[place]


def _span(word: str) -> tuple[int, int]:
    match = _SPAN.fullmatch(word)
    if not match:
        raise UsageError(f"{word[:40]!r} is not an index", "give 7 or 0-99")
    return int(match[1]), int(match[2] or match[1])


def number(word: str | None, otherwise: int) -> int:
    try:
        return int(word or otherwise)
    except ValueError:
        raise UsageError(f"{str(word)[:40]!r} is not a number") from None


def as_json(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """An answer as JSON; what hostler says of a failure as a failure that the page can show."""

    def respond(request: Request) -> Response:
        return _respond(lambda: answer(request))

    return respond


def as_deed(act: Callable[[Sequence[str], dict[str, Any]], Any]) -> Callable[[Request], Any]:
    """An act on the runs that a request names; the act gets the rest of it, too."""

    async def respond(request: Request) -> Response:
        try:
            body = dict(await request.json())
            runs = [str(run) for run in body.pop("runs")]
        except (ValueError, KeyError, TypeError, RecursionError):  # nested deeper than Python reads
            return Response(b'{"error":"name the runs"}', 400, media_type="application/json")
        except ClientDisconnect:  # nobody is there to be answered
            return Response(status_code=400)
        return await asyncio.to_thread(_respond, lambda: act(runs, body))

    return respond


def _respond(
    answer: Callable[[], Any], encode: Callable[[Any], bytes] = dumps, kind: str = "application/json"
) -> Response:
    try:
        return Response(encode(answer()), media_type=kind)
    except (HostlerError, OSError) as error:
        return failed(error)


def failed(error: HostlerError | OSError) -> Response:
    status = 404 if isinstance(error, MissingError) else 400 if isinstance(error, UsageError) else 503
    return Response(dumps({"error": str(error)}), status, media_type="application/json")


def as_numbers(answer: Callable[[Request], bytes]) -> Callable[[Request], Response]:
    """An answer as bytes that the page reads as columns of numbers."""

    def respond(request: Request) -> Response:
        return _respond(lambda: answer(request), lambda data: data, "application/octet-stream")

    return respond


# The rows of a sweep on their way to a page: the first ones at once, the rest as they are read.
#
# A line of JSON is a part of the table, by column. Rows that change later come with the stream of changes: a
# page listens from the version that the first line names.


PART = 2500  # rows of a line after that
POLL = 0.01  # seconds between two looks at how far the reading has come


async def lines(watcher: Watcher, one: LiveSweep, overview: Callable[[], Any] = dict) -> AsyncIterator[bytes]:
    """Lines until all rows of the sweep are sent, or the sweep has disappeared; the first has `overview`."""
    version, sent, over = watcher.live.version, 0, False
    while not over and not watcher.over and watcher.live.sweeps.get(one.name) is one:
        over = one.whole  # asked before the rows are: none comes between
        rows = list(one.rows.values())
        if over and not sent:
            rows.sort(key=lambda row: row.index)
        while len(rows) - sent >= (PART if sent else FIRST) or (over and (sent < len(rows) or not sent)):
            part = rows[sent : sent + (PART if sent else FIRST)]
            last = over and sent + len(part) == len(rows)
            about = {"version": version, "last": last}
            yield await asyncio.to_thread(_line, one, part, about, dict if sent else overview)
            sent += len(part)
            if last:
                return
        if not over:
            await asyncio.sleep(POLL)


def _line(
    one: LiveSweep, rows: Sequence[Row], about: Mapping[str, Any], overview: Callable[[], Any]
) -> bytes:
    total = max(one.expected - one.hidden, 0)
    return dumps({**about, "total": total, "overview": overview(), **shape.table(rows)}) + b"\n"
