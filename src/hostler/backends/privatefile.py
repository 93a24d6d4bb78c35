"""A file that its user alone may read, with the secrets of a launch's workers.

It lies in a folder of the same rights. Rights are looked at after they were set, and before the file is
believed: some file systems know none, and a file that another user has put there is not ours.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path

from hostler import env, private
from hostler.errors import MachineError, MissingError
from hostler.frozen import dataclass
from hostler.spec.names import slug

OWN, FILE = "own:", "file:"  # how the place of one is written down: of one worker, or of all of a launch
FOLDER = "secrets"
ENDING = ".json"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class PrivateContent:
    """Content of such a file."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # for its reader itself

    def __bool__(self) -> bool:
        return bool(self.secrets or self.variables)


def folder() -> Path:
    return env.cache_dir() / FOLDER


def keep_new(fleet: str, kept: PrivateContent) -> Path:
    """In a new file of this fleet."""
    return keep(name_of(fleet, secrets.token_hex(8)), kept)


def keep(name: str, kept: PrivateContent) -> Path:
    """In the file of this name, whole or not at all."""
    place = folder() / name
    fresh = place.with_name(f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        private.own_folder(place.parent, private.ANOTHER_CACHE)
        _write(fresh, json.dumps(asdict(kept)).encode())
        fresh.replace(place)
    except OSError as error:
        raise MachineError(
            f"secrets cannot be kept at {place}: {error.strerror}", "free space there, or fix its rights"
        ) from None
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    return place


def read(place: Path) -> PrivateContent:
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            _check(place, os.fstat(handle))
            found = json.loads(file.read())
            return PrivateContent(found["secrets"], found["variables"])
    except FileNotFoundError:
        raise MissingError(
            f"the secrets of this launch are gone: {place} does not exist here",
            "check that this machine sees that folder; hostler up starts workers that have them",
        ) from None
    except OSError as error:
        raise MachineError(
            f"the secrets of this launch cannot be read: {place}: {error.strerror}", "fix the rights there"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise MachineError(f"{place} is damaged", "hostler up starts workers with a new one") from None


def remove(place: Path) -> None:
    place.unlink(missing_ok=True)


def remove_own(where: str) -> None:
    """Remove the file of a worker that has left for good, and nothing outside the folder of secrets."""
    place = Path(where.removeprefix(OWN))
    if where.startswith(OWN) and place.parent == folder():
        remove(place)


def name_of(fleet: str, launch: str) -> str:
    return f"{slug(fleet)}@{slug(launch)}{ENDING}"


def remove_all(fleet: str, but: str = "") -> None:
    """Remove the files of all launches of a fleet; `but` is the name of one that stays."""
    for place in folder().glob(f"{slug(fleet)}@*{ENDING}"):
        if place.name != but:
            remove(place)


def _write(place: Path, data: bytes) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        _check(place, os.fstat(handle))
        file.write(data)
        file.flush()
        os.fsync(handle)


def _check(place: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise MachineError(f"{place} belongs to another user", "remove it, or choose another `cache`")
    if found.st_mode & _OTHERS:
        raise MachineError(
            f"other users may read {place}: no secret is kept there",
            f"chmod go= {place}; or choose a `cache` on a file system that keeps rights",
        )
