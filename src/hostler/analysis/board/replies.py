"""How requests are answered: as JSON; what hostler says of a failure is a failure that the page can show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hostler.analysis.plain import dumps
from hostler.errors import HostlerError, MissingError, UsageError


def indices(words: str) -> set[int]:
    found: set[int] = set()
    for word in filter(None, words.split(",")):
        first, _, last = word.partition("-")
        try:
            begin, end = int(first), int(last or first)
        except ValueError:
            raise UsageError(f"{word!r} is no index") from None
        found.update(range(begin, min(end, begin + 100_000) + 1))
    return found


def number(word: str | None, otherwise: int) -> int:
    try:
        return int(word or otherwise)
    except ValueError:
        raise UsageError(f"{word!r} is no number") from None


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
        except (ValueError, KeyError, TypeError):
            return Response(b'{"error":"name the runs"}', 400, media_type="application/json")
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
