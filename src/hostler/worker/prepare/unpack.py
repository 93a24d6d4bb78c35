"""Unpacks an archive into a folder that nothing in it can leave.

Absolute names, '..', links that lead out, devices and pipes are refused by name, and so is an archive
that is damaged. Files come first and links last, so that nothing is ever written through a link; each
link is then followed and must end inside. Of the mode only the x bit is kept, times are now (a build
tool takes 1970 badly). Bytes and members are counted while they come: an archive that grows beyond the
settings is refused, whatever sizes it claims.
"""

from __future__ import annotations

import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from hostler import settings
from hostler.confined import CREATE, leads_inside
from hostler.errors import MachineError, PrepareError
from hostler.frozen import dataclass
from hostler.settings import Sizes

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")
CHUNK = 1 << 20
LONGEST = 4096  # letters of a link
LONGEST_HEADER = 1 << 15  # bytes of a tar's header that holds long names: some Pythons search it for seconds
SMALL = 1e8  # bytes that every archive may become
HEADER = 512  # bytes that a member counts at least: many empty files fill a disk too
_NAMES = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError)


def is_archive(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, *, what: str) -> None:
    """Unpack a tar (plain, gz, bz2, xz) or zip into an empty folder; `what` names it in errors."""
    try:
        allowance = _Allowance.of(archive.stat().st_size, settings.sizes(), what)
        _extract(_members(archive, what, allowance), folder, what, allowance)
    except _DAMAGED as error:
        raise PrepareError(
            f"{what} is not a whole archive: {error}", hint="make or upload it again"
        ) from error
    except OSError as error:
        if error.errno is None:  # a damaged gzip or bzip2 stream
            raise PrepareError(f"{what} is not a whole archive: {error}") from error
        raise MachineError(f"cannot unpack {what}: {error.strerror}", hint=f"in {folder}") from error


@dataclass(frozen=True)
class _ArchiveMember:
    name: str
    kind: str  # file, folder, link, same (a hard link), other
    executable: bool = False
    target: str = ""


Content = IO[bytes] | None


class _Allowance:
    """How much an archive may still become."""

    def __init__(self, size: float, files: float, setting: str, what: str) -> None:
        self._size, self._files, self._left, self._setting, self._what = size, files, size, setting, what

    @classmethod
    def of(cls, archive: int, limits: Sizes, what: str) -> _Allowance:
        grown = max(SMALL, archive * limits.unpacked_ratio)
        setting = "HOSTLER_UNPACKED_RATIO" if grown < limits.unpacked_max else "HOSTLER_UNPACKED_MAX"
        return cls(min(grown, limits.unpacked_max), limits.unpacked_files, setting, what)

    def member(self) -> None:
        self._files -= 1
        if self._files < 0:
            raise self._refusal("holds too many files", "HOSTLER_UNPACKED_FILES")
        self.take(HEADER)

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self._refusal(f"would become more than {self._size:.0f} bytes", self._setting)

    def _refusal(self, why: str, setting: str) -> PrepareError:
        return PrepareError(
            f"{self._what} {why}, and is not unpacked",
            hint=f"if it is what you made, a larger {setting} lets it pass",
        )


def _members(archive: Path, what: str, allowance: _Allowance) -> Iterator[tuple[_ArchiveMember, Content]]:
    # a tar that ends in a zip passes for a zip, so tar is asked first
    if _is_tar(archive):
        return _of_tar(archive, allowance)
    if zipfile.is_zipfile(archive):
        return _of_zip(archive)
    raise PrepareError(f"{what} is neither a tar nor a zip archive")


class _Header(tarfile.TarInfo):
    """The header of a member, which may bring a long name along: that is held in memory and searched."""

    @classmethod
    def frombuf(cls, *given: Any) -> Any:
        header = super().frombuf(*given)
        if header.type in _NAMES and header.size > LONGEST_HEADER:
            raise RuntimeError(
                f"a header of {header.size} bytes"
            )  # no error that tarfile would take for its own
        return header


def _is_tar(archive: Path) -> bool:
    try:
        tarfile.open(archive, tarinfo=_Header).close()
    except tarfile.TarError:
        return False
    return True


def _of_tar(archive: Path, allowance: _Allowance) -> Iterator[tuple[_ArchiveMember, Content]]:
    with tarfile.open(archive, encoding="utf-8", errors="surrogateescape", tarinfo=_Header) as tar:
        for info in tar:
            member = _ArchiveMember(info.name, _tar_kind(info), bool(info.mode & 0o100), info.linkname)
            yield member, tar.extractfile(info) if info.isreg() else None
        while tar.fileobj is not None and (rest := tar.fileobj.read(CHUNK)):
            allowance.take(len(rest))  # to the end, where the compressed stream's own checksum is


def _of_zip(archive: Path) -> Iterator[tuple[_ArchiveMember, Content]]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            mode = info.external_attr >> 16
            if stat.S_ISLNK(mode):
                with zipped.open(info) as file:
                    target = os.fsdecode(file.read(LONGEST + 1))
                if len(target) > LONGEST:
                    raise zipfile.BadZipFile(f"the link {info.filename!r} is too long")
                yield _ArchiveMember(info.filename, "link", target=target), None
            elif info.is_dir():
                yield _ArchiveMember(info.filename, "folder"), None
            else:
                with zipped.open(info) as file:
                    yield _ArchiveMember(info.filename, "file", bool(mode & 0o100)), file


def _tar_kind(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return "folder"
    if info.issym():
        return "link"
    if info.islnk():
        return "same"
    return "file" if info.isreg() else "other"


def _extract(
    members: Iterator[tuple[_ArchiveMember, Content]], folder: Path, what: str, allowance: _Allowance
) -> None:
    links: list[tuple[Path, _ArchiveMember]] = []
    for member, content in members:
        allowance.member()
        path = _inside(folder, member.name, what)
        if path == folder:
            continue
        if member.kind == "link":
            links.append((path, member))
            continue
        try:
            _place(path, member, content, folder, what, allowance)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise PrepareError(f"{what}: {member.name!r} stands in the way of another member") from error
    for path, member in links:
        _link(path, member, what)
    for path, member in links:
        if not leads_inside(str(folder), str(path)):
            raise _refused(what, member.name, f"leads out of its folder, to {member.target!r}")


def _place(
    path: Path, member: _ArchiveMember, content: Content, folder: Path, what: str, allowance: _Allowance
) -> None:
    if member.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if member.kind == "same":
        os.link(_original(folder, member, what), path)
    elif member.kind == "file" and content is not None:
        with open(os.open(path, CREATE, 0o666), "wb") as file:
            while piece := content.read(CHUNK):
                allowance.take(len(piece))
                file.write(piece)
        if member.executable:
            path.chmod(path.stat().st_mode | 0o111)
    else:
        raise _refused(what, member.name, "is a device or a pipe")


def _original(folder: Path, member: _ArchiveMember, what: str) -> Path:
    """The file that a hard link is another name of."""
    try:
        path = _inside(folder, member.target, what)
    except PrepareError as error:
        raise _refused(what, member.name, f"leads out of its folder, to {member.target!r}") from error
    if not path.is_file():
        raise _refused(what, member.name, f"is a link to {member.target!r}, which is not there")
    return path


def _link(path: Path, member: _ArchiveMember, what: str) -> None:
    if member.target.startswith("/"):
        raise _refused(what, member.name, f"leads out of its folder, to {member.target!r}")
    if os.path.realpath(path.parent) != str(path.parent):
        raise _refused(what, member.name, "lies behind another link")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    try:
        os.symlink(member.target, path)
    except FileExistsError as error:
        raise _refused(what, member.name, "stands in the way of another member") from error


def _inside(folder: Path, name: str, what: str) -> Path:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise _refused(what, name, "is outside its folder")
    return Path(os.path.realpath(folder)).joinpath(*parts)


def _refused(what: str, name: str, why: str) -> PrepareError:
    return PrepareError(f"{what}: member {name!r} {why}", hint="an archive may only hold what lies inside it")
