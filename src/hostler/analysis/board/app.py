"""The dashboard's web application: its addresses and their handlers.

Answers are made in threads; only the stream of changes is a coroutine.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from hostler.analysis import purposes
from hostler.analysis.board import deeds, logpage, pages, replies, shape
from hostler.analysis.board.curvebook import CurveBook
from hostler.analysis.board.deeds import Wake
from hostler.analysis.board.door import Door
from hostler.analysis.board.guard import STREAMS, Guard
from hostler.analysis.board.live import LiveSweep
from hostler.analysis.board.pagefiles import PageFiles
from hostler.analysis.board.replies import Indices, as_deed, as_json, as_numbers, failed, number
from hostler.analysis.board.watcher import Watcher
from hostler.analysis.plain import dumps
from hostler.errors import MissingError, UsageError
from hostler.records.rows import Row
from hostler.store import Store

MOVED = 300  # rows of a sweep that are sent one by one
MANY = 1000  # runs whose curves are sent at once
TICK = 0.1  # seconds between two looks at whether anything changed
SILENCE = 15.0  # seconds after which an empty line says that the stream is there
BUSY = 1.0  # seconds between two tellings while the store is read for the first time
PATIENCE = 60.0  # seconds a first view waits for the store's first answer


def make(store: Store, watcher: Watcher, guard: Guard, wake: Wake | None = None) -> Starlette:
    board, page = _BoardRoutes(store, watcher, wake), PageFiles(watcher.notice)
    routes = [
        Route("/", page.index),
        Route("/static/{name}", page.one),
        Route("/static/plots/{name}", page.plot),
        Route("/api/overview", as_json(board.overview)),
        Route("/api/runs", as_json(board.runs)),
        Route("/api/table", board.table),
        Route("/api/events", board.events),
        Route("/api/curves", as_json(board.curves)),
        Route("/api/points", as_numbers(board.points)),
        Route("/api/search", as_json(board.search)),
        Route("/api/run", as_json(board.run)),
        Route("/api/file", as_json(board.file)),
        Route("/api/compare", as_json(board.compare)),
        Route("/api/code", as_json(board.code)),
        Route("/api/errors", as_json(board.errors)),
        Route("/api/log", as_json(board.log)),
        Route("/api/workers", as_json(board.workers)),
        Route("/api/purposes", as_json(board.purposes)),
        Route("/api/stop", as_deed(board.stop), methods=["POST"]),
        Route("/api/retry", as_deed(board.retry), methods=["POST"]),
        Route("/api/tag", as_deed(board.tag), methods=["POST"]),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(Door, guard=guard)], lifespan=lambda _: _running(watcher)
    )


@asynccontextmanager
async def _running(watcher: Watcher) -> AsyncIterator[None]:
    """The watcher's life is the server's: a signal may end the process right after."""
    await run_in_threadpool(watcher.start)  # loads what the first answer needs, before it is asked for
    try:
        yield
    finally:
        await asyncio.to_thread(watcher.stop)


class _BoardRoutes:
    def __init__(self, store: Store, watcher: Watcher, wake: Wake | None) -> None:
        self._store, self._watcher, self._wake = store, watcher, wake
        self._live = watcher.live
        self._book, self._lines = CurveBook(store), shape.Sweeps()
        self._purposes = purposes.Purposes(store)
        self._born = secrets.token_hex(8)  # another server, another count of versions
        self._streams: Counter[str] = Counter()  # by the address of who listens

    def overview(self, request: Request) -> Any:
        self._watcher.notice()
        self._watcher.wait(PATIENCE, request.query_params.get("sweep", ""))
        return self._overview()

    def _overview(self) -> dict[str, Any]:
        live = self._live
        return {
            "born": self._born,
            "store": self._store.url,
            "version": live.version,
            "trouble": live.trouble,
            "writable": self._watcher.writable,
            "reading": not self._watcher.ready.is_set(),
            "sweeps": [self._lines.line(sweep) for sweep in list(live.sweeps.values())],
        }

    def runs(self, request: Request) -> Any:
        self._watcher.wait(PATIENCE)
        name = request.query_params.get("sweep", "")
        sweep = self._sweep(name)
        version = self._live.version
        rows = sorted(sweep.rows.values(), key=lambda row: row.index)
        return {"sweep": sweep.name, "version": version, "waiting": sweep.waiting, **shape.table(rows)}

    async def table(self, request: Request) -> Response:
        """The same in parts, as they are read; the overview comes with the first."""
        name = request.query_params.get("sweep", "")
        self._watcher.notice()
        if not self._watcher.has_begun(name):
            await asyncio.to_thread(self._watcher.wait, PATIENCE, name)
        if (sweep := self._live.sweeps.get(name)) is None:
            return failed(MissingError(f"no sweep named {name!r} in this store"))
        lines = replies.lines(self._watcher, sweep, self._overview)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def events(self, request: Request) -> Response:
        try:
            since = number(request.query_params.get("since"), 0)
        except UsageError as error:
            return failed(error)
        client = request.client.host if request.client else ""
        if self._streams[client] >= STREAMS:
            return PlainTextResponse("Too many pages of this dashboard are open: close some.\n", 429)
        return StreamingResponse(self._stream(request, client, since), media_type="text/event-stream")

    async def _stream(self, request: Request, client: str, since: int) -> AsyncIterator[bytes]:
        self._streams[client] += 1
        self._watcher.enter()
        try:
            quiet = 0.0
            yield b"retry: 1000\n\n"
            while not self._watcher.over and not await request.is_disconnected():
                version = self._live.version
                if version != since and (self._watcher.ready.is_set() or quiet >= BUSY):
                    yield b"data: " + await asyncio.to_thread(self._changes, since) + b"\n\n"
                    since, quiet = version, 0.0
                elif quiet >= SILENCE:
                    yield b": still here\n\n"
                    quiet = 0.0
                await asyncio.sleep(TICK)
                quiet += TICK
        finally:
            self._watcher.leave()
            self._streams[client] -= 1

    def _changes(self, since: int) -> bytes:
        """Rows that changed; of a sweep in which many did only its name: its table is asked for again."""
        rows: list[Row] = []
        again: list[str] = []
        for sweep in list(self._live.sweeps.values()):
            moved = [run for run, version in list(sweep.versions.items()) if version > since]
            if len(moved) > MOVED:
                again.append(sweep.name)
            else:
                rows += [sweep.rows[run] for run in moved]
        return dumps({**self._overview(), "rows": [shape.row(row) for row in rows], "again": again})

    def curves(self, request: Request) -> Any:
        asked = request.query_params
        most = min(2000, max(20, number(asked.get("most"), 400)))
        rows = self._rows(request)[:MANY]
        metric = asked.get("metric") or ""
        return {**self._book.curves(rows, metric, most), "names": self._book.names(rows)}

    def points(self, request: Request) -> bytes:
        """Curves with all their points, as columns of numbers."""
        asked = request.query_params
        metric, along = (asked.get(name) or "" for name in ("metric", "along"))
        return self._book.packed(self._rows(request)[:MANY], metric, along)

    def search(self, request: Request) -> Any:
        from hostler.analysis.board import searchdata  # loads pandas, which a first view can do without

        asked = request.query_params
        return searchdata.search(self._sweep(asked.get("sweep", "")), asked.get("metric") or "")

    def run(self, request: Request) -> Any:
        row = self._one(request)
        return {**shape.row(row), **pages.run(self._store, row.key)}

    def file(self, request: Request) -> Any:
        return pages.file(self._store, self._one(request).key, request.query_params.get("name", ""))

    def compare(self, request: Request) -> Any:
        return pages.compare(self._store, self._rows(request)[:50])

    def code(self, request: Request) -> Any:
        return pages.code(self._store, self._rows(request)[:2])

    def errors(self, request: Request) -> Any:
        name = request.query_params.get("sweep")
        self._watcher.ready.wait(PATIENCE)  # an error that has not been read yet is no news later
        chosen = [self._sweep(name)] if name else list(self._live.sweeps.values())
        rows = [row for sweep in chosen for row in list(sweep.rows.values()) if row.failure]
        return pages.errors(self._store, rows)

    def log(self, request: Request) -> Any:
        asked, row = request.query_params, self._one(request)
        if word := asked.get("search"):
            return logpage.search(self._store, row.id, word)
        if "after" in asked:
            return logpage.since(self._store, row.id, asked["after"])
        return logpage.tail(self._store, row.id)

    def workers(self, request: Request) -> Any:
        return pages.workers(self._store, lambda run: row.name if (row := self._row(run)) else run)

    def purposes(self, request: Request) -> Any:
        return {"launches": purposes.rows(self._purposes.read())}

    def stop(self, runs: Sequence[str], _: Mapping[str, Any]) -> Any:
        return self._did(deeds.stop(self._store, self._named(runs)))

    def retry(self, runs: Sequence[str], _: Mapping[str, Any]) -> Any:
        return self._did(deeds.retry(self._store, self._named(runs), self._wake))

    def tag(self, runs: Sequence[str], given: Mapping[str, Any]) -> Any:
        return self._did(deeds.tag(self._store, self._named(runs), given.get("add"), given.get("remove")))

    def _did(self, results: list[dict[str, Any]]) -> Any:
        self._watcher.hurry()
        return {"results": results}

    def _sweep(self, name: str) -> LiveSweep:
        if name not in self._live.sweeps:
            self._watcher.ready.wait(PATIENCE)  # it may not have been reached yet
        if name not in self._live.sweeps:
            raise MissingError(f"no sweep named {name!r} in this store")
        return self._live.sweeps[name]

    def _one(self, request: Request) -> Row:
        rows = self._rows(request)
        if not rows:
            raise MissingError("no such run in this store")
        return rows[0]

    def _rows(self, request: Request) -> list[Row]:
        """Runs by id, or of a sweep by index: `sweep=x&index=0-99,105`."""
        asked = request.query_params
        if ids := asked.getlist("id"):
            return self._named(ids)
        sweep = self._sweep(asked.get("sweep", ""))
        indices = Indices(asked.get("index", ""))
        return [row for row in list(sweep.rows.values()) if row.index in indices]

    def _named(self, runs: Sequence[str]) -> list[Row]:
        if not all(map(self._row, runs)):
            self._watcher.ready.wait(PATIENCE)
        return [row for row in map(self._row, runs) if row]

    def _row(self, run: str) -> Row | None:
        rows = (sweep.rows.get(run) for sweep in list(self._live.sweeps.values()))
        return next((row for row in rows if row), None)
