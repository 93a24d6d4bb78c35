"""A store by its URL; drivers are imported on use. Whether it can be used; a folder's file system."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hostler import settings
from hostler.errors import MachineError, StoreError, UsageError
from hostler.store.base import NotFound, Store

if TYPE_CHECKING:
    from hostler.store.retry import RetryTime

BUCKETS = ("s3", "gs", "az")
KNOWN = ("file://", "ssh://", "memory:", *(f"{scheme}://" for scheme in BUCKETS))

PATIENCE = 10.0  # seconds that a person waits for a store; a worker waits longer

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MOUNT_ID = re.compile(rb"^mnt_id:\s*([0-9]+)$", re.MULTILINE)
_NETWORK = re.compile(
    r"nfs4?|lustre|gpfs|beegfs|ceph|wekafs|panfs|pvfs2|orangefs|glusterfs|cifs|smb3|smbfs|afs|9p|virtiofs"
    r"|fuse(\..+)?"  # of these most are: sshfs, cephfs, buckets; the others only get longer times
)
_DEPTH = 8  # overlays on overlays
_ALMOST = re.compile(r"(s3|gs|gcs|az|ssh|file):")
_ALIASES = {
    "sftp": "ssh",
    "scp": "ssh",
    "gcs": "gs",
    "s3a": "s3",
    "s3n": "s3",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "adl": "az",
}


def open_store(url: str, *, retry: float | None = None, shared: bool = False) -> Store:
    """A folder's path, file://, ssh://, memory:[name], s3://, gs:// or az://.

    `retry` bounds the silence of a bucket or a host, in seconds; a `shared` connection outlives the process.
    """
    scheme = _scheme(url)
    if scheme == "memory":
        from hostler.store.memory import shared_memory

        return shared_memory(url.partition(":")[2].strip("/"))
    if scheme in BUCKETS:
        return _open_bucket(scheme + url[len(scheme) :], retry)
    if scheme == "ssh":
        from hostler.store.ssh import SshStore

        return SshStore(scheme + url[len(scheme) :], _patience(retry), shared=shared)
    from hostler.store.folder import FolderStore

    folder = folder_of(url)
    if os.path.isfile(folder):  # else it would look like a store in which nothing is yet
        raise StoreError(f"{folder}: a file is where a folder should be", hint="use another folder")
    return FolderStore(folder)


def open_at(url: str) -> Store:
    """A store for a person, who waits less long for an answer than a worker."""
    return open_store(url, retry=min(settings.timing().retry, PATIENCE), shared=True)


def is_folder(url: str) -> bool:
    """Whether it names a folder, which not every machine can see."""
    return _scheme(url) in ("", "file")


def is_network(folder: Path) -> bool:
    """Whether a folder, or where it will be made, is on a network file system: there "absent" may be a minute
    old. Elsewhere than on Linux a folder counts as local."""
    return _NETWORK.fullmatch(file_system(folder)) is not None


def file_system(folder: Path) -> str:
    """Type of the file system as the kernel names it; that of the writable part of an overlay. '' if nobody
    can tell. The kernel itself says which mount a folder is in: links are followed, no name of a mount point
    is read, and a mount under another one is not taken for it."""
    try:
        table = Path("/proc/self/mountinfo").read_bytes().splitlines()
        for _ in range(_DEPTH):
            kind, upper = _mount(_mount_id(folder), table)
            if kind != "overlay" or not upper or not os.path.isdir(upper):
                return kind
            folder = Path(os.fsdecode(upper))
    except (OSError, ValueError):
        pass
    return ""


def check(store: Store, *, creates: bool = True) -> None:
    """Create, read back and delete a probe; StoreError says what cannot be done. `creates`: a second create
    of the probe with other bytes must be refused, or else every worker would win every run."""
    key, data = f"probe/{os.urandom(8).hex()}", os.urandom(16).hex().encode()
    any(store.list(key))  # a store that does not answer says so best when it is only asked
    written = store.put(key, data, if_absent=True)
    try:
        if not written or store.get(key).data != data:
            raise NotFound(key)
        if creates and (_create_again(store, key, data[::-1] + b"!") or store.get(key).data != data):
            raise _overwrites(store.url)
    except NotFound:
        hint = "check its address and what answers there, or use another store"
        raise StoreError(f"{store.url} does not give back what was written", hint) from None
    finally:
        store.delete(key)


def _create_again(store: Store, key: str, data: bytes) -> bool:
    if is_folder(store.url):
        from hostler.store.folder import FolderStore  # loaded already, where it is one

        if isinstance(store, FolderStore):
            return store.create(key, data)
    return store.put(key, data, if_absent=True)


def _overwrites(url: str) -> StoreError:
    if is_folder(url):
        text = (
            f"{url}: its file system lets a hard link overwrite a file, so every worker would win every run"
        )
        return StoreError(text, "use a folder on ext4, xfs, btrfs, ZFS or NFS, or a bucket")
    text = f"{url} ignores conditional writes (If-None-Match), so every worker would win every run"
    return StoreError(
        text, "update that server, use one that refuses them (SeaweedFS, MinIO, S3), or a folder"
    )


def _scheme(url: str) -> str:
    """'' for a path; UsageError for what looks like a URL and is none of ours."""
    if not url.strip():
        raise UsageError("the store's address is empty", f"name a folder, or one of {', '.join(KNOWN)}")
    if url.startswith("memory:"):
        return "memory"
    match = _SCHEME.match(url)
    if match:
        return _known(match[1].lower(), url)
    almost = _ALMOST.match(url)
    if almost and not os.path.lexists(url):
        raise UsageError(f"{url!r} is not a store", f"did you mean {_ALIASES.get(almost[1], almost[1])}://…?")
    return ""


def _known(scheme: str, url: str) -> str:
    kinds = (*BUCKETS, "file", "ssh", "memory")
    if scheme in kinds:
        return scheme
    from difflib import get_close_matches  # only for a mistake

    near = _ALIASES.get(scheme) or next(iter(get_close_matches(scheme, kinds, cutoff=0.5)), None)
    meant = next((f"did you mean {known}? " for known in KNOWN if near and known.startswith(near)), "")
    raise UsageError(
        f"{url!r}: {scheme}:// is not a kind of store", f"{meant}known: a folder, {', '.join(KNOWN)}"
    )


def folder_of(url: str) -> str:
    """The path that a file:// address, or a path, means."""
    if _scheme(url) == "file":
        from urllib.parse import unquote  # only for this kind of address

        path = unquote(url[len("file://") :].removeprefix("localhost/"))
        return path if path.startswith("/") else f"/{path}"
    return os.path.abspath(Path(url).expanduser())


def _open_bucket(url: str, retry: float | None) -> Store:
    try:
        from hostler.store.bucket import BucketStore
    except ModuleNotFoundError as error:
        raise MachineError(
            f"{url} needs the package {error.name}", "pip install 'hostler[buckets]', which is obstore"
        ) from error
    return BucketStore(url, _patience(retry))


def _patience(bound: float | None) -> RetryTime:
    from hostler.store.retry import RetryTime  # a folder is not asked again

    return RetryTime() if bound is None else RetryTime(bound=bound)


def _mount_id(folder: Path) -> bytes:
    """Number of the mount that holds a folder, or its nearest parent that is there."""
    while True:
        try:
            handle = os.open(folder, os.O_PATH)
            break
        except FileNotFoundError:
            if folder == folder.parent:
                raise
            folder = folder.parent if not folder.is_symlink() else Path(os.path.realpath(folder)).parent
    try:
        match = _MOUNT_ID.search(Path(f"/proc/self/fdinfo/{handle}").read_bytes())
    finally:
        os.close(handle)
    return match[1] if match else b""


def _mount(number: bytes, table: list[bytes]) -> tuple[str, bytes]:
    """Type of a mount, and the folder that an overlay writes to. Pure."""
    for line in table:
        left, _, right = line.partition(b" - ")
        if left.split(b" ", 1)[0] == number:
            kind, _, options = right.split(b" ", 2)
            upper = re.search(rb"(?:^|,)upperdir=((?:[^,\\]|\\.)*)", options)
            return kind.decode(), _unescaped(upper[1]) if upper else b""
    return "", b""


def _unescaped(text: bytes) -> bytes:
    """`\\040` is a space in the table; overlayfs itself puts a backslash before a comma or another one."""
    octal = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), text)
    return re.sub(rb"\\(.)", rb"\1", octal)
