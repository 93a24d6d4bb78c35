"""What a run left, read back: the files its newest COMMIT names, checked by size and hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.body import decode
from hostler.records.tree import hash_file, inside
from hostler.store import Store


def newest(store: Store, run: str) -> tuple[int, list[dict[str, Any]]] | None:
    """(attempt, files) of the newest attempt that left something; None if none did."""
    found = [e.key for e in store.list(layout.all_outputs(run)) if e.key.endswith("/COMMIT")]
    if not found:
        return None
    key = max(found)
    return layout.split_output(key), list(decode(store.get(key).data, key)["files"])


def fetch(store: Store, run: str, attempt: int, rows: list[dict[str, Any]], folder: Path) -> None:
    """Bring the files into an empty folder."""
    for row in rows:
        path = folder / inside(row["name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        store.download(layout.output_file(run, attempt, int(row["n"])), path)
        if path.stat().st_size != row["size"] or hash_file(path) != row["sha256"]:
            raise DamagedError(
                f"{row['name']} of {run} is not what was saved", hint="hostler doctor checks the store"
            )
