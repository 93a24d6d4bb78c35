"""The local end of upload and download: a file read, or one that arrives whole or not at all.

Trouble with the local file is this machine's (MissingError, MachineError), never the store's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hostler.errors import MachineError, MissingError
from hostler.store.base import TEMPORARY

BLOCK = 1 << 20


def open_local(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(f"{path} does not exist") from None
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}") from error


@contextmanager
def arriving(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; it takes its name, durable, only when the block ends without an error."""
    folder = os.path.dirname(os.path.abspath(path))
    temp = os.path.join(folder, TEMPORARY + os.urandom(8).hex())
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temp, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    except OSError as error:
        raise MachineError(
            f"{path} cannot be written: {error.strerror}", "free disk space or rights"
        ) from error
    finally:
        remove_if_there(temp)


def remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
