"""The token that opens a dashboard, and the files of this user that hold it while the dashboard runs.

A token reaches the browser in the fragment of an address, which no server, log or list of processes sees:
`hostler ui` prints the address, and opens the browser on a page of this user that leads there.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from hostler.errors import MachineError, UsageError
from hostler.private import own_folder

_TEXT = re.compile(r"[A-Za-z0-9_-]{16,256}")
_LONGEST = 4096  # bytes of a token's file that are read
_PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>hostler</title><p><a href="{url}">Open the dashboard</a></p>
"""


def new() -> str:
    return secrets.token_urlsafe(24)


def from_file(path: Path) -> str:
    """The token in this file, which its owner alone may read; a missing file is made with a new token."""
    with suppress(FileExistsError):
        _write(path, f"{new()}\n")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            _check(path, os.fstat(handle))
            token = file.read(_LONGEST).decode("ascii", "replace").strip()
    except OSError as error:
        raise UsageError(f"--token-file {path}: {error.strerror}", "name a file of yours") from None
    if not _TEXT.fullmatch(token):
        raise UsageError(
            f"--token-file {path} does not contain a token",
            "write 16 to 256 letters, digits, - and _; without --token-file, hostler ui makes one",
        )
    return token


@contextmanager
def kept(folder: Path, name: str, token: str, url: str) -> Iterator[Path]:
    """Keep token and address in two private files until the block ends; the page that leads to the address.

    The files are `NAME.token` for scripts and `NAME.html` for the browser.
    """
    text, page = folder / f"{name}.token", folder / f"{name}.html"
    own_folder(folder, "set XDG_STATE_HOME to a folder of yours")
    try:
        for path, data in ((text, f"{token}\n"), (page, _PAGE.format(url=escape(url)))):
            path.unlink(missing_ok=True)  # of a dashboard that was killed
            _write(path, data)
        yield page
    finally:
        for path in (text, page):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise MachineError(
            f"cannot write {path}: {error.strerror}", "check free space and rights there"
        ) from None
    with os.fdopen(handle, "w") as file:
        os.fchmod(handle, 0o600)
        file.write(text)


def _check(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise UsageError(f"--token-file {path} is not a file", "name a file of yours")
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise UsageError(f"other users may read or change {path}", f"if it is yours: chmod 600 {path}")
