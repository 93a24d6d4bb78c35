"""How requests are answered: as JSON; what hostler says of a failure is a failure that the page can show."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hostler.analysis.plain import dumps
from hostler.errors import HostlerError, MissingError, UsageError

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
    found = _SPAN.fullmatch(word)
    if not found:
        raise UsageError(f"{word[:40]!r} is not an index", "like 7 or 0-99")
    return int(found[1]), int(found[2] or found[1])


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


def as_deed(act: Callable[[Sequence[str]], Any]) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        try:
            body = await request.json()
            runs = [str(run) for run in body["runs"]]
        except (ValueError, KeyError, TypeError, RecursionError):  # nested deeper than Python reads
            return Response(b'{"error":"name the runs"}', 400, media_type="application/json")
        except ClientDisconnect:  # nobody is there to be answered
            return Response(status_code=400)
        return await asyncio.to_thread(_respond, lambda: act(runs))

    return respond


def _respond(answer: Callable[[], Any]) -> Response:
    try:
        return Response(dumps(answer()), media_type="application/json")
    except (HostlerError, OSError) as error:
        return failed(error)


def failed(error: HostlerError | OSError) -> Response:
    status = 404 if isinstance(error, MissingError) else 400 if isinstance(error, UsageError) else 503
    return Response(dumps({"error": str(error)}), status, media_type="application/json")
