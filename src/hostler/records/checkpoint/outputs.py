"""Outputs of a run: its output folder, the paths under `outputs:`, and files its script made where it worked.

Files first, COMMIT last, with sizes and hashes, by which they are checked when they are read back. An attempt
that went on from a checkpoint lists the files of those before it, too, where it has not written them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError, MachineError, MissingError, StoreTooLarge
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import TEXT, WHOLE, Record, checked_rows, decode, encode
from hostler.records.checkpoint import bundle, restorer
from hostler.records.checkpoint.bundle import Bundle
from hostler.records.checkpoint.restorer import row_of, rows_of
from hostler.records.checkpoint.tree import hash_file, scan
from hostler.records.run.attempt import Attempt
from hostler.records.run.handoff import Handoff
from hostler.records.series import metrics
from hostler.store import Store

WORK = "work/"  # before the name of a file whose own name is another's already


@dataclass(frozen=True)
class Output:
    """A file to keep. `unnamed`: neither in the output folder nor under `outputs:`."""

    name: str
    path: Path
    unnamed: bool = False


@dataclass(frozen=True)
class Kept:
    rows: list[Record]  # all files of the run, those of earlier attempts too
    refused: list[str]  # a line for each file that could not be kept


def keep(
    store: Store,
    attempt: Attempt,
    files: Iterable[Output],
    earlier: Sequence[Record],
    guard: Callable[[], None],
    sent: dict[str, str],
    *,
    bundled: bool = False,
) -> Kept:
    """Upload the files, then COMMIT with their names, sizes and hashes. Nothing to keep writes nothing.
    `bundled`: small files in one object.

    `earlier`: rows of the attempt that this one continues. `sent`: hashes of what a call that broke off has
    uploaded, by key. A file that cannot be read, or that the store does not take, keeps no other from it."""
    known, names = {row["name"]: row for row in earlier}, _Names()
    rows: list[Record] = []
    refused: list[str] = []
    uploaded: dict[Path, Record] = {}
    small = Bundle()
    n = int(bundled)  # after the bundle
    for file in files:
        try:
            name = names.fitting(file.name)
            data = small.read(file.path) if bundled else None
            row = uploaded.get(file.path) or _hashed(file, n, data)
            old = known.get(name)
            if old and (old["size"], old["sha256"]) == (row["size"], row["sha256"]):
                continue
            if data is not None and "at" not in row:
                row = {**row, "n": 0, "at": small.add(data)}
                uploaded[file.path] = row
            elif row["n"] == n:
                key = layout.output_file(attempt.key.run, attempt.number, n)
                if sent.get(key) != row["sha256"]:
                    store.upload(file.path, key)
                    sent[key] = row["sha256"]
                n, uploaded[file.path] = n + 1, row
        except StoreTooLarge as error:
            refused.append(f"not kept: {file.name} is larger than the store takes: {error}")
        except (OSError, DamagedError, MissingError, MachineError) as error:
            refused.append(f"not kept: {file.name}: {getattr(error, 'strerror', None) or error}")
        else:
            names.add(name)
            rows.append({**row, "name": name})
    if small.has_files:
        store.put(layout.output_file(attempt.key.run, attempt.number, 0), small.data)
    older = [row for row in earlier if names.free(row["name"])]
    if rows:
        record = {"run": attempt.key.run, "files": rows, **({"earlier": older} if older else {})}
        record |= bundle.format_of([*rows, *older])
        guard()
        store.put(layout.output_commit(attempt.key.run, attempt.number), encode(record))
    return Kept([*older, *rows], refused)


def named(folder: Handoff, patterns: Iterable[str]) -> dict[str, Path]:
    """Files of the output folder and those that the patterns find in the working folder, by name."""
    return dict(_files(folder, patterns))  # two patterns may find one file


def unnamed_size(rows: Iterable[Record], but: Collection[str]) -> int:
    """Bytes of files that nobody named, without these."""
    return sum(row["size"] for row in rows if row.get("unnamed") and row["name"] not in but)


def before(store: Store, run: str, attempt: int) -> list[Record]:
    """Files of an attempt and of those it went on from: what one that goes on from it has not lost."""
    places = _commits(store, run)
    while places and attempt not in places and attempt > min(places):
        attempt = metrics.predecessor(store, run, attempt)
    return read(store, places[attempt]) if attempt in places else []


def are_there(store: Store, run: str) -> bool:
    return bool(_commits(store, run))


def newest(store: Store, run: str) -> tuple[int, list[dict[str, Any]]] | None:
    """(attempt, files) of the newest attempt that left something; None if none did."""
    places = _commits(store, run)
    return (max(places), read(store, places[max(places)])) if places else None


def read(store: Store, key: str) -> list[dict[str, Any]]:
    """The files that a COMMIT names, each with the attempt that brought it."""
    record, own = decode(store.get(key).data, key, bundle.FORMAT), layout.split_output(key) or 0
    files = checked_rows(record.get("files"), FIELDS, key, NEEDED)
    earlier = checked_rows(record.get("earlier") or [], FIELDS, key, [*NEEDED, "attempt"])
    if not all(0 < row["attempt"] < own for row in earlier):
        raise DamagedError(f"{key} is damaged: it names files of attempts that were not before it")
    rows = [*earlier, *({**row, "attempt": own} for row in files)]
    try:
        rows_of(rows, last=True)
    except DamagedError as error:
        raise DamagedError(f"{key} is damaged: {error}") from None
    return rows


NEEDED = ("name", "size", "sha256", "n")
FIELDS = {"name": TEXT, "size": WHOLE, "sha256": TEXT, "n": WHOLE, "attempt": WHOLE, "at": WHOLE}


def fetch(store: Store, run: str, rows: list[Record], folder: Path) -> None:
    """Bring files that `read` named into an empty folder, which may be missing."""
    files = rows_of(rows, last=True)
    brought = {row_of(row).name: int(row["attempt"]) for row in rows}
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in sorted(set(brought.values())):
        own = [file for file in files if brought[file.name] == attempt]
        restorer.restore(store, own, lambda n, a=attempt: layout.output_file(run, a, n), folder)  # type: ignore[misc]


class _Names:
    """Names that can be in one folder together."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def free(self, name: str) -> bool:
        """Whether it is neither a file nor a folder yet, nor below a file."""
        return name not in self._files | self._folders and not any(f in self._files for f in _above(name))

    def fitting(self, name: str) -> str:
        """The name, or another where it is taken; DamagedError if none can be had."""
        name = name if self.free(name) else WORK + name
        if not self.free(name):
            raise DamagedError("another file has its name")
        return row_of({"name": name}).name

    def add(self, name: str) -> None:
        self._files.add(name)
        self._folders.update(_above(name))


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _hashed(file: Output, n: int, data: bytes | None) -> Record:
    """`data`: its bytes, if they were read."""
    size = file.path.stat().st_size if data is None else len(data)
    sha256 = hash_file(file.path) if data is None else hashlib.sha256(data).hexdigest()
    row: Record = {"size": size, "sha256": sha256, "n": n}
    return {**row, "unnamed": True} if file.unnamed else row


def _commits(store: Store, run: str) -> dict[int, str]:
    """attempt → its COMMIT."""
    keys = [e.key for e in store.list(layout.all_outputs(run)) if e.key.endswith("/COMMIT")]
    return {attempt: key for key in keys if (attempt := layout.split_output(key)) is not None}


def _files(folder: Handoff, patterns: Iterable[str]) -> Iterator[tuple[str, Path]]:
    yield from _below(folder.output, "")
    for pattern in patterns:
        for path in sorted(folder.work.glob(pattern.rstrip("/"))):
            if path.is_dir():
                yield from _below(path, f"{path.relative_to(folder.work)}/")
            elif path.is_file():
                yield str(path.relative_to(folder.work)), path


def _below(root: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    for row in scan(root).rows:
        if (root / row.name).is_file():
            yield prefix + row.name, root / row.name
