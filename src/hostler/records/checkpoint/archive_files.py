"""The files of an archived run in a folder of this machine: whole, or not there.

They arrive in a hidden folder beside it, each checked before it counts, and the folder gets its name when all
are there. Whoever is killed on the way has left nothing under that name; the same again goes on with what has
arrived. One at a time delivers to a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostler import private
from hostler.errors import MachineError, UsageError
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.checkpoint import restorer
from hostler.records.checkpoint.restorer import rows_of
from hostler.store import Store

RECORD = "run.json"


def deliver(store: Store, record: Record, target: Path) -> int:
    """Files and record of an archived run as this folder, which must be empty or not there yet; how many
    files were there already from an attempt that broke off."""
    staging = place(target)
    try:
        _check(target, staging)
        staging.parent.mkdir(parents=True, exist_ok=True)
        private.own_folder(staging, "--to FOLDER elsewhere")  # its place may be one that others write to
        with _alone(staging, target):
            known = _arrive(store, record, staging)
            _name(staging, target)
    except OSError as error:
        raise MachineError(
            f"{error.filename or target}: {error.strerror}", hint="free disk space or rights; --to FOLDER"
        ) from error
    return known


def place(target: Path) -> Path:
    """Where files are until all have arrived: on the same disk."""
    whole = target.absolute()
    return whole.with_name(f".{whole.name}.arriving")


def _check(target: Path, staging: Path) -> None:
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        if not (staging / "files").exists():  # all had arrived, and whoever brought it was killed then
            shutil.rmtree(staging, ignore_errors=True)
        raise UsageError(f"{target} is there already, and not empty", hint="--to FOLDER")


@contextmanager
def _alone(staging: Path, target: Path) -> Iterator[None]:
    with open(staging / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another is bringing files to {target} right now", hint="--to FOLDER") from None
        yield


def _arrive(store: Store, record: Record, staging: Path) -> int:
    rows = rows_of(record.get("files"), last=True)
    files, next_one = staging / "files", staging / "next"
    if not _is_of(staging / "of.json", record):
        shutil.rmtree(files, ignore_errors=True)
        _write(next_one, staging / "of.json", _mark(record))
    files.mkdir(exist_ok=True)
    run = record["run"]
    known = restorer.restore(store, rows, lambda n: layout.archived_file(run, n), files, resume=True)
    _write(next_one, files / RECORD, record)
    return known


def _name(staging: Path, target: Path) -> None:
    os.replace(staging / "files", target.absolute())
    shutil.rmtree(staging, ignore_errors=True)


def _mark(record: Record) -> Record:
    """Names what arrives: a run that was tried again is another."""
    return {"run": record["run"], "k": record["k"], "files": record["files"]}


def _is_of(path: Path, record: Record) -> bool:
    try:
        return bool(json.loads(path.read_bytes()) == _mark(record))
    except (OSError, ValueError):
        return False


def _write(through: Path, path: Path, record: Record) -> None:
    through.write_text(json.dumps(record, indent=2, default=str) + "\n")
    os.replace(through, path)
