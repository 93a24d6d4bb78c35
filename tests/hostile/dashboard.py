"""The dashboard over a store, every address of it asked in this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from hostler.analysis.board import app
from hostler.analysis.board.watcher import Watcher
from hostler.store import open_store

PATIENCE = 8.0  # seconds for one answer
FIRST = ("/", "/api/errors", "/api/workers", "/api/purposes", "/api/events?since=-1")


def look() -> int:
    """Ask for everything; an answer that fails by a bug, or a watcher that is gone, is a traceback."""
    return asyncio.run(_look())


def deep_body() -> int:
    """Post JSON that is deeper than any; the answer names the mistake."""
    return asyncio.run(_post(b"[" * 100_000))


def many_indices() -> int:
    """Ask for a million runs by a short question."""
    ranges = ",".join(f"{n}00000-{n}99999" for n in range(200))
    return asyncio.run(_post(None, f"/api/curves?sweep=good&index={ranges}"))


async def _post(body: bytes | None, path: str = "/api/stop") -> int:
    store = open_store(os.environ["HOSTLER_STORE"])
    watcher = Watcher(store, near=True)
    board: Any = app.make(store, watcher, SimpleNamespace(csrf="secret"))  # type: ignore[arg-type]
    watcher.start()
    try:
        status, _ = await _ask(board, path, body)
    finally:
        await asyncio.to_thread(watcher.stop)
    return 0 if status in (200, 400) else 1


async def _look() -> int:
    store = open_store(os.environ["HOSTLER_STORE"])
    watcher = Watcher(store, near=True)
    board: Any = app.make(store, watcher, SimpleNamespace(csrf="secret"))  # type: ignore[arg-type]
    watcher.start()
    try:
        overview = json.loads((await _ask(board, "/api/overview"))[1] or b'{"sweeps":[]}')
        names = [str(sweep["name"]) for sweep in overview["sweeps"]]
        print(*names)
        for path in (*FIRST, *(path for name in names for path in _paths(name))):
            await _ask(board, path)
        for deed in ("stop", "retry"):
            await _ask(board, f"/api/{deed}", b'{"runs": ["x"]}')
        watcher.hurry()
        await asyncio.sleep(0.02)
        if not watcher._thread.is_alive():
            print("Traceback (most recent call last):\nWatcherError: the watcher is gone", file=sys.stderr)
    finally:
        await asyncio.to_thread(watcher.stop)
    return 0


def _paths(name: str) -> list[str]:
    """Every address that is about a sweep."""
    chosen = f"sweep={quote(name, safe='', errors='replace')}"
    return [
        *(f"/api/{what}?{chosen}" for what in ("runs", "table", "errors", "search")),
        *(f"/api/{what}?{chosen}&index=0-9" for what in ("curves", "compare", "run", "code")),
        f"/api/file?{chosen}&index=0&name=report.txt",
        *(f"/api/{what}?{chosen}&index=0-9&metric=loss" for what in ("curves", "points", "search")),
        *(f"/api/points?{chosen}&index=0-9&metric=loss&along={x}" for x in ("time", "acc")),
        *(f"/api/log?{chosen}&index=0{more}" for more in ("", "&search=e", "&after=1-0-0")),
    ]


async def _ask(board: Any, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Status and body of one request, past the door: whoever may look sees what an enemy wrote."""
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": address,
        "raw_path": address.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "app": board,
    }
    messages: list[dict[str, Any]] = []
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": body or b"", "more_body": False}
        while not (
            path.startswith("/api/events") and len(messages) > 2
        ):  # a stream is left once it has spoken
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    try:
        await asyncio.wait_for(board.router(scope, receive, send), PATIENCE)
    except asyncio.TimeoutError:
        print(f"Traceback (most recent call last):\nTimeoutError: {path}", file=sys.stderr)
        return 500, b""
    except Exception:
        print(f"{path}:", file=sys.stderr)
        traceback.print_exc()
        return 500, b""
    status = next(m["status"] for m in messages if m["type"] == "http.response.start")
    return status, b"".join(m.get("body", b"") for m in messages)
