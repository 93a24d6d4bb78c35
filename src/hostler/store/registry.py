"""A store by its URL; drivers are imported on use. What kind of folder a store's is."""

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
_NETWORK = re.compile(r"nfs4?|lustre|gpfs|beegfs|cifs|smb3|afs|ceph|glusterfs|9p|fuse\.sshfs")  # file systems
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

    folder = _folder(url)
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
    """Whether a folder is on a network file system, where an absent answer may be a minute old: by the mount
    table where there is one (Linux); elsewhere a folder counts as local."""
    try:
        table = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return False
    return _NETWORK.fullmatch(kind_of(str(folder.absolute()), table)) is not None


def kind_of(path: str, mountinfo: str) -> str:
    """File system type of the mount that holds a path. Pure."""
    best, kind = "", ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4].encode().decode("unicode_escape") if left.count(" ") >= 4 else ""
        if len(point) >= len(best) and point and (path + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, right.split(" ")[0]
    return kind


def check(store: Store) -> None:
    """Create, read back and delete a probe; StoreError says what cannot be done."""
    key, data = f"probe/{os.urandom(8).hex()}", os.urandom(16).hex().encode()
    any(store.list(key))  # a store that does not answer says so best when it is only asked
    written = store.put(key, data, if_absent=True)
    try:
        if not written or store.get(key).data != data:
            raise NotFound(key)
    except NotFound:
        hint = "check its address and what answers there, or use another store"
        raise StoreError(f"{store.url} does not give back what was written", hint) from None
    finally:
        store.delete(key)


def _scheme(url: str) -> str:
    """'' for a path; UsageError for what looks like a URL and is none of ours."""
    if not url.strip():
        raise UsageError("the store's address is empty", f"name a folder, or one of {', '.join(KNOWN)}")
    if url.startswith("memory:"):
        return "memory"
    found = _SCHEME.match(url)
    if found:
        return _known(found[1].lower(), url)
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


def _folder(url: str) -> str:
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
