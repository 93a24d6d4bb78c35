"""The code of a job on this machine: once per content, and a private copy for each run.

The shared folder is named by content (the part of its name before the first '.') and is never run in:
scripts may write beside themselves. A token for git is neither an argument nor left on disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hostler import env
from hostler.attempt.working_files import Look
from hostler.errors import DamagedError, MachineError, PrepareError
from hostler.records import layout
from hostler.spec.job import Source
from hostler.store.base import NotFound, Store
from hostler.worker.prepare import command
from hostler.worker.prepare.once import Note, once
from hostler.worker.prepare.unpack import unpack

CHUNK = 1 << 20


def code_dir(store: Store, source: Source, cache: Path, note: Note) -> Path:
    """The unpacked snapshot or the checked out commit; an empty folder if the job has no code."""
    if source.snapshot:
        sha = source.snapshot
        return once(
            cache / "code" / sha,
            lambda place: unpack_blob(store, layout.code(sha), sha, place, what="the code snapshot"),
            what="unpacking the code",
            note=note,
            exact=True,
        )
    if source.git:
        name = hashlib.sha256(f"{source.git}\n{source.ref}".encode()).hexdigest()
        return once(
            cache / "code" / f"git-{name[:40]}",
            lambda place: _checkout(source, place),
            what=f"fetching {source.git}",
            note=note,
            exact=True,
        )
    empty = cache / "code" / "none"
    return once(empty, lambda place: None, what="making an empty folder", note=note, exact=True)


def working_copy(code: Path, target: Path, files: Look | None = None) -> Path:
    """A copy that one run may write to; what an earlier attempt left there is replaced. `files` gets the look
    at it."""
    files = {} if files is None else files
    try:
        try:
            copy_tree(str(code), str(target), files)
        except (FileExistsError, FileNotFoundError):  # another attempt was here, or nobody yet
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.clear()
            copy_tree(str(code), str(target), files)
    except OSError as error:
        raise MachineError(f"cannot copy the code to {target}: {error.strerror or error}") from error
    return target


def identity(code: Path) -> str:
    """Content part of a shared folder's name: equal for equal content."""
    return code.name.partition(".")[0]


def unpack_blob(store: Store, key: str, sha: str, place: Path, *, what: str) -> None:
    """An archive of the store into place, after checking that its bytes are those that were stored."""
    unpack_checked(lambda archive: store.download(key, archive), key, sha, place, what=what)


def unpack_checked(bring: Callable[[Path], None], key: str, sha: str, place: Path, *, what: str) -> None:
    """The same for an archive that is brought in another way."""
    archive = place.with_name(f"{place.name}.archive")
    try:
        try:
            bring(archive)
        except NotFound as error:
            raise PrepareError(f"{what} is not in the store ({key})", hint="submit the job again") from error
        if file_hash(archive) != sha:
            raise DamagedError(
                f"{what} ({key}) is damaged: its bytes are not those that were uploaded",
                hint=f"remove {key} from the store, and submit again",
            )
        unpack(archive, place, what=what)
    finally:
        archive.unlink(missing_ok=True)


def file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _checkout(source: Source, place: Path) -> None:
    """Only the commit where the server gives it alone, else all branches and tags, then the commit."""
    assert source.git is not None
    if shutil.which("git") is None:
        raise MachineError("git is not installed on this machine", hint="install git, or submit a snapshot")
    if not source.ref:
        raise PrepareError(f"no commit of {source.git} was recorded", hint="submit the job again")
    environ = env.for_git(source.git, _token(source))
    _git(source, place, environ, "init", "-q")
    _git(source, place, environ, "remote", "add", "origin", source.git)
    try:
        _git(source, place, environ, "fetch", "-q", "--depth", "1", "origin", source.ref)
    except PrepareError:
        _git(source, place, environ, "fetch", "-q", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*")
    _git(source, place, environ, "-c", "advice.detachedHead=false", "checkout", "-q", "--detach", source.ref)
    if os.path.exists(place / ".gitmodules"):
        _git(source, place, environ, "submodule", "-q", "update", "--init", "--recursive")


def _git(source: Source, place: Path, environ: dict[str, str], *words: str) -> None:
    command.run(["git", *words], what=f"fetching {source.git}", cwd=place, environ=environ)


def _token(source: Source) -> str | None:
    if not source.token_secret:
        return None
    token = env.secret(source.token_secret)
    if not token:
        raise PrepareError(
            f"the secret {source.token_secret} for {source.git} is not set on this machine",
            hint=f"export {source.token_secret} where you submit; hostler up starts workers that have it",
        )
    return token


PIECE = 1 << 20


def copy_tree(source: str, target: str, files: Look | None = None, prefix: str = "") -> None:
    """Make `target`, which must not exist, a copy of the folder `source`: bytes, modes, times, links as
    links. Projects are many small files, and a file costs two dozen system calls with the standard library's
    copy; here it costs the few that a copy needs. `files` gets the look at it, with `prefix` before the
    names."""
    files = {} if files is None else files
    os.mkdir(target)  # noqa: PTH102
    with os.scandir(source) as entries:
        for entry in entries:
            to = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(link := os.readlink(entry.path), to)
                files[prefix + entry.name] = link
            elif entry.is_dir():
                copy_tree(entry.path, to, files, f"{prefix}{entry.name}/")
            elif entry.is_file():
                files[prefix + entry.name] = _copy_file(entry.path, to)
            else:
                raise shutil.SpecialFileError(f"{entry.path} is neither a file nor a folder")
    facts = os.stat(source)
    os.chmod(target, facts.st_mode & 0o7777)  # noqa: PTH101
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _copy_file(source: str, target: str) -> tuple[int, int]:
    """Size and time of the copy."""
    read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        facts = os.fstat(read)
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _copy_bytes(read, write, facts.st_size)
            os.fchmod(write, facts.st_mode & 0o7777)
            os.utime(write, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            return facts.st_size, facts.st_mtime_ns
        finally:
            os.close(write)
    finally:
        os.close(read)


def _copy_bytes(read: int, write: int, left: int) -> None:
    while left > 0 and (data := os.read(read, min(left, PIECE))):
        left -= len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(write, rest) :]
