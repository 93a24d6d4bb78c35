"""Names the files that differ between two code snapshots, in one line for a person."""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
from pathlib import Path

from hostler.fleet.snapshot.tree import shown
from hostler.records import layout
from hostler.spec.job import Job, Source
from hostler.store import NotFound, Store

SHOWN = 6  # files named; the rest is counted


def line(store: Store, old: Source, new: Source) -> str:
    """'a.py changed, b.py new'; '' if nothing is known to differ."""
    if old.git or new.git:
        return (
            f"{old.git}@{old.ref} → {new.git}@{new.ref}" if (old.git, old.ref) != (new.git, new.ref) else ""
        )
    if old.snapshot == new.snapshot or not old.snapshot or not new.snapshot:
        return ""
    before, after = contents(store, old.snapshot), contents(store, new.snapshot)
    if before is None or after is None:
        return "what changed is not known (the old snapshot is gone)"
    rows = [f"{shown(name)} {word}" for name, word in _differing(before, after)]
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(rows[:SHOWN]) + more


def script_gone(store: Store, job: Job, old: Source, new: Source) -> str:
    """A file of the old snapshot that the command names and the new one lacks; '' if there is none."""
    if not old.snapshot or not new.snapshot or old.snapshot == new.snapshot:
        return ""
    before, after = names(store, old.snapshot), names(store, new.snapshot)
    named = [str(Path(job.cwd) / word) for word in job.command if len(word) < 1000]
    return next((name for name in named if name in before and name not in after), "")


def names(store: Store, sha: str) -> set[str]:
    """The files of a snapshot, from its record."""
    try:
        return {row[0] for row in json.loads(store.get(layout.code_record(sha)).data)["files"]}
    except NotFound:
        return set()


def contents(store: Store, sha: str) -> dict[str, str] | None:
    """name → hash of every file in a snapshot; None if the store has it no longer."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "code.tar.gz"
        try:
            store.download(layout.code(sha), archive)
        except NotFound:
            return None
        with tarfile.open(archive, encoding="utf-8", errors="surrogateescape") as tar:
            return {member.name: _hash(tar, member) for member in tar if not member.isdir()}


def _hash(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = tar.extractfile(member) if member.isfile() else None
    if file is None:
        return f"link {member.linkname}"
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()


def _differing(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    changed = [(name, "changed") for name in after if name in before and before[name] != after[name]]
    new = [(name, "new") for name in after if name not in before]
    return changed + new + [(name, "gone") for name in before if name not in after]
