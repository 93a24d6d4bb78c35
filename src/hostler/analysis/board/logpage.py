"""A run's log for the page: its end, what came since, and lines that hold a word."""

from __future__ import annotations

from typing import Any

from hostler.records import layout
from hostler.store import NotFound, Store

TAIL = 400_000  # bytes shown at first
PIECE = 2_000_000  # bytes sent at once afterwards
FOUND = 500  # lines a search answers with


def tail(store: Store, run: str) -> dict[str, Any]:
    """The end of the log, and the place to go on from."""
    keys = [(entry.key, entry.size) for entry in store.list(layout.logs(run))]
    first, size = len(keys), 0
    while first and size < TAIL:
        first -= 1
        size += keys[first][1]
    text = b"".join(_get(store, key) for key, _ in keys[first:])
    cut = first > 0 or len(text) > TAIL
    return {"text": _text(text[-TAIL:]), "after": keys[-1][0] if keys else "", "cut": cut}


def since(store: Store, run: str, after: str) -> dict[str, Any]:
    """What was added after this place."""
    pieces, size = [], 0
    prefix = layout.logs(run)
    for entry in store.list(prefix, after if after.startswith(prefix) else ""):
        data = _get(store, entry.key)
        pieces.append(data)
        size += len(data)
        after = entry.key
        if size > PIECE:
            break
    return {"text": _text(b"".join(pieces)), "after": after}


def search(store: Store, run: str, word: str) -> dict[str, Any]:
    """Lines of the whole log that hold a word, in any case, with their numbers."""
    wanted, found, number, rest = word.casefold(), [], 0, b""
    for entry in store.list(layout.logs(run)):
        *lines, rest = (rest + _get(store, entry.key)).split(b"\n")
        for line in lines:
            number += 1
            if wanted in (text := _text(line)).casefold():
                found.append({"line": number, "text": text[:2000]})
    if rest and wanted in _text(rest).casefold():
        found.append({"line": number + 1, "text": _text(rest)[:2000]})
    return {"word": word, "count": len(found), "lines": found[-FOUND:]}


def _get(store: Store, key: str) -> bytes:
    try:
        return store.get(key).data
    except NotFound:
        return b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
