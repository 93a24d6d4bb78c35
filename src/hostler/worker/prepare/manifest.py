"""Checks that a folder of the cache still holds what its maker put there.

The maker writes the hash of every file beside the folder, with size, times and inode. A worker that did not
make it compares once, and hashes only files whose facts have changed: nobody can set a file's change time,
so equal facts mean equal bytes, and a large data set costs a look at its names. A folder without a manifest,
as an earlier version left it, gets one if every file in it is ours and closed to others.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from hostler import private
from hostler.errors import MachineError

ENDING = ".files"
CHUNK = 1 << 20
_known: set[Path] = set()  # folders that this process has made or compared


def write(folder: Path, made: Path) -> None:
    """Note what is in `made`, which is `folder` or will become it."""
    fresh = folder.with_name(f"{made.name}.{secrets.token_hex(6)}{ENDING}")
    try:
        with open(fresh, "w") as file:
            for name, path, facts in _tree(str(made)):
                file.write(json.dumps([name, _facts(facts), _hash(path, facts)]) + "\n")
        fresh.chmod(0o600)
        fresh.replace(_beside(folder))
    finally:
        fresh.unlink(missing_ok=True)
    _known.add(folder)


def check(folder: Path, *, exact: bool) -> None:
    """MachineError unless all is as it was made, and if `exact` nothing was added; once in a process."""
    if folder in _known:
        return
    try:
        private.check_closed(_beside(folder))
    except FileNotFoundError:
        _adopt(folder)
        return
    with open(_beside(folder)) as file:
        notes = (json.loads(line) for line in file)
        noted = next(notes, None)
        for name, path, facts in _tree(str(folder)):
            order = _order(name, noted)
            if noted and order > 0:
                raise _changed(folder, noted[0])
            if order < 0 and exact:
                raise _changed(folder, name)
            if noted and order == 0:
                if noted[1] != _facts(facts) and noted[2] != _hash(path, facts):
                    raise _changed(folder, name)
                noted = next(notes, None)
        if noted:
            raise _changed(folder, noted[0])
    _known.add(folder)


def _adopt(folder: Path) -> None:
    for name, _, facts in _tree(str(folder)):
        others = not stat.S_ISLNK(facts.st_mode) and private.others_write(facts)
        if others or facts.st_uid not in (os.geteuid(), 0):
            raise MachineError(
                f"{folder} holds {name}, which another user can write to or made",
                f"rm -r {folder}: it is made again",
            )
    write(folder, folder)


def _tree(folder: str, inside: str = "") -> Iterator[tuple[str, str, os.stat_result]]:
    """(name inside, path, facts) of everything in a folder, sorted as `_order` does; follows no link."""
    with os.scandir(f"{folder}/{inside}") as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = f"{inside}{entry.name}"
        yield name, f"{folder}/{name}", entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            yield from _tree(folder, f"{name}/")


def _order(name: str, noted: list[str] | None) -> int:
    """Whether a name comes before (-1), at (0) or after (1) that of a note; -1 after the last note."""
    if noted is None:
        return -1
    ours, theirs = name.split("/"), noted[0].split("/")
    return (ours > theirs) - (ours < theirs)


def _hash(path: str, facts: os.stat_result) -> str:
    """The hash of a file's bytes or of a link's text; for anything else its kind."""
    if stat.S_ISLNK(facts.st_mode):
        return f"link {hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()}"
    if not stat.S_ISREG(facts.st_mode):
        return "folder" if stat.S_ISDIR(facts.st_mode) else "other"
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except PermissionError:
        return "unreadable"
    return digest.hexdigest()


def _facts(facts: os.stat_result) -> str:
    return f"{facts.st_mode:o} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_ino}"


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{ENDING}")


def _changed(folder: Path, name: str) -> MachineError:
    return MachineError(
        f"{folder} is not what was put there: {name} was changed since",
        f"find out by whom; rm -r {folder}: it is made again",
    )
