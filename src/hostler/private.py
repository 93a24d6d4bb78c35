"""Folders of this user: made so, or checked before anything in them is believed.

An own folder (`own_folder`) is open to nobody else: notes by which processes are killed, sockets, secrets,
keys. A closed one (`closed_folder`) may be read by others, but only this user or root can write to it: a
cache, whose code is run. Anything else is refused in one line. A group that is the user's alone, as many
systems make one for each user, counts as the user.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from hostler.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

ELSEWHERE = "set TMPDIR to a folder of your own"
ANOTHER_CACHE = "name a folder of your own: `cache:` of the fleet, or HOSTLER_CACHE"


def own_folder(path: Path, elsewhere: str = ELSEWHERE) -> Path:
    """Make it for this user alone, or check that it is so. `elsewhere` ends the hint of a refusal.

    A folder of ours that others could read, as earlier versions made them, is closed. One that cannot be made
    is not refused here: whoever writes to it learns why."""
    facts = _make(path)
    if facts is None:
        return path
    _check_owner(path, facts, elsewhere, owners=(os.geteuid(),))
    _check_writers(path, facts, elsewhere)
    if facts.st_mode & 0o077:
        path.chmod(0o700)
        if path.lstat().st_mode & 0o077:
            raise MachineError(
                f"{path} cannot be closed to other users", f"its disk keeps no rights: {elsewhere}"
            )
    return path


def closed_folder(path: Path, elsewhere: str = ANOTHER_CACHE) -> Path:
    """Make it for this user alone, or check that nobody else but root can write to it.

    It may be a link, if that is ours or root's: caches are often moved to a larger disk."""
    if _make(path) is not None:
        check_closed(path, elsewhere)
    return path


def check_closed(path: Path, elsewhere: str = ANOTHER_CACHE) -> None:
    """MachineError if another user made this folder or file, or can write to it."""
    owners, facts = (os.geteuid(), 0), path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        if facts.st_uid not in owners:
            raise _foreign(path, facts, elsewhere)
        facts = path.stat()
    if facts.st_uid not in owners:
        raise _foreign(path, facts, elsewhere)
    _check_writers(path, facts, elsewhere)


def others_write(facts: os.stat_result) -> bool:
    """Whether its rights let another user write to it."""
    return bool(facts.st_mode & 0o002 or (facts.st_mode & 0o020 and not _is_own_group(facts.st_gid)))


def _make(path: Path) -> os.stat_result | None:
    """Make what is missing of the path, each level for this user alone; None if it is still not there."""
    with suppress(OSError):
        return path.lstat()
    with suppress(OSError):
        missing = [level for level in (path, *path.parents) if not os.path.lexists(level)]
        for level in reversed(missing):
            with suppress(FileExistsError):  # by another process, and so checked like any other
                level.mkdir(0o700)
                level.chmod(0o700)  # whatever the umask
        return path.lstat()
    return None


def _check_owner(path: Path, facts: os.stat_result, elsewhere: str, owners: tuple[int, ...]) -> None:
    if stat.S_ISLNK(facts.st_mode) or not stat.S_ISDIR(facts.st_mode):
        raise MachineError(f"{path} is not a folder but a link or a file", f"remove it, or {elsewhere}")
    if facts.st_uid not in owners:
        raise _foreign(path, facts, elsewhere)


def _check_writers(path: Path, facts: os.stat_result, elsewhere: str) -> None:
    if others_write(facts):
        raise MachineError(
            f"other users can write to {path}",
            f"chmod -R go-w {path} if all in it is yours; else remove it, or {elsewhere}",
        )


def _foreign(path: Path, facts: os.stat_result, elsewhere: str) -> MachineError:
    return MachineError(f"{path} belongs to another user (uid {facts.st_uid})", f"remove it, or {elsewhere}")


def _is_own_group(gid: int) -> bool:
    """Whether the group has the user's name and no other member."""
    import grp  # a look into the system's lists, which most folders do not need
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
