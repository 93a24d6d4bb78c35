"""Answers requests as JSON; hostler's errors become messages that the page shows."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hostler.analysis.board import shape
from hostler.analysis.board.live import LiveSweep
from hostler.analysis.board.watcher import Watcher
from hostler.analysis.plain import dumps
from hostler.analysis.spend import spend
from hostler.errors import HostlerError, MissingError, UsageError
from hostler.records.rows import Row
from hostler.records.run import heartbeats, run_details
from hostler.records.run.log import RunKey
from hostler.records.sweep import error_groups
from hostler.spec.params import flatten
from hostler.store import Store

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
        raise UsageError(f"{word[:40]!r} is not an index", "give 7 or 0-99")
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


# The rows of a sweep on their way to a page: the first ones at once, the rest as they are read.
#
# A line of JSON is a part of the table, by column. Rows that change later come with the stream of changes: a
# page listens from the version that the first line names.


FIRST = 100  # rows that fill a screen
PART = 2500  # rows of a line after that
POLL = 0.01  # seconds between two looks at how far the reading has come


async def lines(watcher: Watcher, one: LiveSweep) -> AsyncIterator[bytes]:
    """Lines until all rows of the sweep are sent, or the sweep has disappeared."""
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


# Answers to the page besides the rows: a run, a comparison, errors, workers and their spend.


def run(store: Store, key: RunKey) -> dict[str, Any]:
    """Everything of one run that has a page of its own."""
    found = run_details.read(store, key)
    ran = found.environment or {}
    return {
        "attempts": [{**asdict(one), "words": one.words} for one in found.tries],
        "events": [asdict(one) for one in found.events],
        "totals": found.metrics,
        "checkpoints": [asdict(one) for one in found.checkpoints],
        "outputs": [{"name": f.get("name"), "size": f.get("size")} for f in found.outputs],
        "environment": {k: v for k, v in ran.items() if isinstance(v, (str, int, float))},
        "command": list(ran.get("command") or found.job.command),
        "result": found.result,
        "failure": found.row.failure,
        "notes": found.job.notes,
    }


def compare(rows: Sequence[Row]) -> dict[str, Any]:
    """Only what differs between runs: parameters, then last values of metrics. Pure."""
    params = _differing([flatten(row.params) for row in rows])
    metrics = [{n: v for n, v in r.metrics.items() if not n.startswith("system/")} for r in rows]
    facts = _differing([{"state": r.state, "host": r.host, "code": r.code[:12]} for r in rows])
    return {
        "runs": [{"id": r.id, "name": r.name} for r in rows],
        "same": sum(1 for _ in flatten(rows[0].params)) - len(params) if rows else 0,
        "params": params,
        "facts": facts,
        "metrics": _differing(metrics),
    }


def _differing(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return {name: cells for name, cells in columns.items() if len({repr(c) for c in cells}) > 1}


def errors(store: Store, rows: Sequence[Row]) -> list[dict[str, Any]]:
    ours = [row for row in rows if not row.trashed]
    return [asdict(group) for group in error_groups.groups(list(error_groups.failed(store, ours)))]


def workers(store: Store) -> dict[str, Any]:
    """Workers with a heartbeat, and their cost as far as it is known."""
    found = []
    for session in heartbeats.etags(store):
        try:
            beat = heartbeats.read(store, session)
        except HostlerError:  # written by a newer version, or damaged
            continue
        if beat is not None:
            kept = {n: v for n, v in beat.items() if isinstance(v, (str, int, float, bool))}
            found.append({**kept, "session": session, "runs": list(beat.get("runs") or {})})
    return {"workers": found, "spend": spend(store)}
