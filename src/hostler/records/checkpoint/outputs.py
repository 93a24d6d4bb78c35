"""Outputs of a run: its output folder, and the paths named under `outputs:` in its working folder.

Files first, COMMIT last, with sizes and hashes, by which they are checked when they are read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hostler.records import layout
from hostler.records.body import TEXT, WHOLE, Record, checked_rows, decode, encode
from hostler.records.checkpoint import restorer
from hostler.records.checkpoint.restorer import rows_of
from hostler.records.checkpoint.tree import hash_file, scan
from hostler.records.run.attempt import Attempt
from hostler.records.run.handoff import Handoff
from hostler.store import Store


def keep(
    store: Store, attempt: Attempt, folder: Handoff, named: Sequence[str], guard: Callable[[], None]
) -> None:
    """Upload the files, then COMMIT with their names, sizes and hashes. Nothing to keep writes nothing."""
    rows: list[Record] = []
    for name, path in dict(_files(folder, named)).items():  # two patterns may find one file
        rows.append({"name": name, "size": path.stat().st_size, "sha256": hash_file(path), "n": len(rows)})
        store.upload(path, layout.output_file(attempt.key.run, attempt.number, len(rows) - 1))
    if rows:
        guard()
        store.put(
            layout.output_commit(attempt.key.run, attempt.number),
            encode({"run": attempt.key.run, "files": rows}),
        )


def newest(store: Store, run: str) -> tuple[int, list[dict[str, Any]]] | None:
    """(attempt, files) of the newest attempt that left something; None if none did."""
    keys = [e.key for e in store.list(layout.all_outputs(run)) if e.key.endswith("/COMMIT")]
    places = [(attempt, key) for key in keys if (attempt := layout.split_output(key)) is not None]
    if not places:
        return None
    attempt, key = max(places)
    return attempt, read(store, key)


def read(store: Store, key: str) -> list[dict[str, Any]]:
    """The files that a COMMIT names."""
    files = decode(store.get(key).data, key).get("files")
    rows = checked_rows(files, FIELDS, key, FIELDS)
    rows_of(rows, last=True)
    return rows


FIELDS = {"name": TEXT, "size": WHOLE, "sha256": TEXT, "n": WHOLE}


def fetch(store: Store, run: str, attempt: int, rows: list[Record], folder: Path) -> None:
    """Bring the files into an empty folder, which may be missing."""
    files = rows_of(rows, last=True)
    folder.mkdir(parents=True, exist_ok=True)
    restorer.restore(store, files, lambda n: layout.output_file(run, attempt, n), folder)


def _files(folder: Handoff, named: Iterable[str]) -> Iterator[tuple[str, Path]]:
    yield from _below(folder.output, "")
    for name in named:
        for path in sorted(folder.work.glob(name.rstrip("/"))):
            if path.is_dir():
                yield from _below(path, f"{path.relative_to(folder.work)}/")
            elif path.is_file():
                yield str(path.relative_to(folder.work)), path


def _below(root: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    for row in scan(root).rows:
        if (root / row.name).is_file():
            yield prefix + row.name, root / row.name
