"""A run's log for the page: its end, later additions, and lines that contain a word."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import deque
from typing import Any

from hostler.records import layout
from hostler.records.series.logs import fragments
from hostler.store import NotFound, Store

TAIL = 400_000  # bytes shown at first
PIECE = 2_000_000  # bytes sent at once afterwards
MARK = "#"  # in a place: what follows is the beginning of a sign
FOUND = 500  # lines a search answers with


def tail(store: Store, run: str) -> dict[str, Any]:
    """The end of the log, and the place to go on from."""
    keys = [(entry.key, entry.size) for entry in fragments(store, layout.logs(run))]
    first, size = len(keys), 0
    while first and size < TAIL:
        first -= 1
        size += keys[first][1]
    data = b"".join(_get(store, key) for key, _ in keys[first:])
    cut = first > 0 or len(data) > TAIL
    text, after = _whole(data[-TAIL:], keys[-1][0] if keys else "")
    return {"text": text, "after": after, "cut": cut}


def since(store: Store, run: str, after: str) -> dict[str, Any]:
    """Text added after this place."""
    prefix = layout.logs(run)
    place, begun = _place(after) if after.startswith(prefix) else ("", b"")
    pieces = [begun]
    for entry in fragments(store, prefix, place):
        pieces.append(_get(store, entry.key))
        place = entry.key
        if sum(map(len, pieces)) > PIECE:
            break
    text, after = _whole(b"".join(pieces), place)
    return {"text": text, "after": after}


def search(store: Store, run: str, word: str) -> dict[str, Any]:
    """Lines of the whole log that hold a word, in any case, with their numbers."""
    wanted, number, count, rest = word.casefold(), 0, 0, b""
    found: deque[dict[str, Any]] = deque(maxlen=FOUND)
    for entry in fragments(store, layout.logs(run)):
        *lines, rest = (rest + _get(store, entry.key)).split(b"\n")
        for line in lines:
            number += 1
            if wanted in (text := _text(line)).casefold():
                count += 1
                found.append({"line": number, "text": _part(text, wanted)})
    if rest and wanted in _text(rest).casefold():
        count += 1
        found.append({"line": number + 1, "text": _part(_text(rest), wanted)})
    return {"word": word, "count": count, "lines": list(found)}


def _part(line: str, wanted: str) -> str:
    """The newest text with the word in a line that was overwritten, as progress bars are."""
    parts = [part for part in line.split("\r") if wanted in part.casefold()]
    return (parts[-1] if parts else line)[:2000]


def _whole(data: bytes, key: str) -> tuple[str, str]:
    """The text, and the place after it: bytes of a sign that is not whole yet go along with that."""
    decoder = getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    rest = decoder.getstate()[0]
    return text, f"{key}{MARK}{rest.hex()}" if rest else key


def _place(after: str) -> tuple[str, bytes]:
    key, _, rest = after.partition(MARK)
    try:
        return key, bytes.fromhex(rest)
    except ValueError:
        return key, b""


def _get(store: Store, key: str) -> bytes:
    try:
        return store.get(key).data
    except NotFound:
        return b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
