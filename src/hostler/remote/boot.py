"""The far side's first lines: unpack hostler if this machine has not got it, start the program asked for.

Sent as text and run where nothing is installed, so it imports nothing of hostler before it is unpacked. What
it says begins with a mark that only the caller knows: a shell's start-up file may print what it likes. An
unpacked hostler that another user has put there, or can write to, is not run.
"""

from __future__ import annotations

import grp
import hashlib
import io
import json
import os
import platform
import pwd
import shutil
import socket
import sys
import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO


class Refused(Exception):
    """A folder that is not this user's alone to write to; the text says which, and why."""


def main() -> None:
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but answers goes back by that pipe
    told = json.loads(source.readline())
    if told["cache"]:
        os.environ["HOSTLER_CACHE"] = str(Path(told["cache"]).expanduser())
    folder = os.path.join(cache(), "library")
    place = os.path.join(folder, told["sha"])
    try:
        for level in (cache(), folder):
            os.makedirs(level, 0o700, exist_ok=True)
            check(level)
        if not os.path.isdir(place):
            say(sink, told["mark"], "need", {})
            unpack(source, place, told["sha"])
        check(place)
    except Refused as error:
        say(sink, told["mark"], "refused", {"why": str(error)})
        return
    except OSError as error:
        say(
            sink, told["mark"], "disk", {"path": error.filename or place, "why": error.strerror or str(error)}
        )
        return
    sys.path.insert(0, place)
    program = import_module(told["module"])
    facts = {
        "python": platform.python_version(),
        "exe": sys.executable,
        "host": socket.gethostname(),
        "library": place,
        "machine": [sys.platform, platform.machine(), *platform.libc_ver()],
    }
    say(sink, told["mark"], "ready", facts)
    program.serve(told["args"], source, sink)


def cache() -> str:
    given = os.environ.get("HOSTLER_CACHE")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    return os.path.join(base, "hostler")


def check(path: str) -> None:
    """As `hostler.private` does it, which may not be here yet."""
    owners = (os.geteuid(), 0)
    link, facts = os.lstat(path), os.stat(path)
    if link.st_uid not in owners or facts.st_uid not in owners:
        raise Refused(f"{path} belongs to another user")
    if facts.st_mode & 0o002 or (facts.st_mode & 0o020 and not own_group(facts.st_gid)):
        raise Refused(f"other users can write to {path}")


def own_group(gid: int) -> bool:
    """Whether the group has the user's name and no other member."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def unpack(source: BinaryIO, place: str, sha: str) -> None:
    """Beside its place first, so that nobody finds half of it; another who was faster has won."""
    size = int(source.readline())
    data = zlib.decompress(source.read(size))
    if hashlib.sha256(data).hexdigest() != sha:
        raise OSError(5, "hostler arrived damaged", place)
    fresh = f"{place}.{os.urandom(6).hex()}.tmp"
    try:
        Path(fresh).mkdir(0o700)
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            packed.extractall(fresh)
        try:
            Path(fresh).rename(place)
        except OSError:
            if not os.path.isdir(place):
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def say(sink: Any, mark: str, word: str, facts: dict[str, Any]) -> None:
    sink.write(f"\0hostler:{mark}:{word} {json.dumps(facts)}\n".encode())
    sink.flush()


if __name__ == "__main__":
    main()
