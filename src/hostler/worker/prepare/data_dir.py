"""A run's $HOSTLER_DATA: one folder of links, name to where the data lies on this machine.

What has to be unpacked, fetched or computed is so once per machine; what is at an absolute path is
used in place. Nothing is copied per run.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hostler.errors import MissingError, PrepareError
from hostler.records import layout
from hostler.records.checkpoint import bulk
from hostler.spec.job import DataItem
from hostler.spec.names import check_part, place_of_data
from hostler.store.base import NotFound, Store
from hostler.worker.prepare import command
from hostler.worker.prepare.code import identity, unpack_checked, working_copy
from hostler.worker.prepare.once import Note, once
from hostler.worker.prepare.unpack import is_archive, unpack

CHUNK = 1 << 20
TIMEOUT = 60.0  # seconds without a byte of a download
WEB = ("http", "https", "file")
HUB = "hf"


def data_dir(
    items: Sequence[DataItem],
    store: Store,
    cache: Path,
    scratch: Path,
    note: Note,
    code: Path,
    env: Mapping[str, str],
) -> Path:
    """The folder of links, made anew under scratch."""
    folder = scratch / "data"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if not items and not folder.is_symlink() and not os.listdir(folder):
            return folder
        shutil.rmtree(folder)
        folder.mkdir()
    for item in items:
        os.symlink(_place(item, store, cache / "data", note, code, env), folder / check_part(item.name))
    return folder


def put_in_place(items: Sequence[DataItem], data: Path, work: Path) -> bool:
    """Link data with `at` to its place in the working folder, or beside it; PrepareError if code is there.
    Whether there is any.

    A folder of data becomes a folder of links: what the run adds to it is the run's own."""
    placed = [(item, item.at) for item in items if item.at]
    for item, at in placed:
        try:
            _put(item, Path(os.readlink(data / item.name)), work, place_of_data(at))
        except ValueError as error:
            raise PrepareError(f"data {item.name!r}: at: {error}") from None
    return bool(placed)


def _put(item: DataItem, source: Path, work: Path, name: str) -> None:
    target = Path(os.path.normpath(work / name))
    own = work.parent if name.startswith("../") else work
    if not f"{os.path.realpath(target.parent)}/".startswith(f"{os.path.realpath(own)}/"):
        raise PrepareError(
            f"data {item.name!r}: at: {item.at} leads out of the run's folder", hint="choose another `at:`"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir():
            os.symlink(source, target)
            return
        target.mkdir(exist_ok=not target.is_symlink())
    except (FileExistsError, NotADirectoryError):
        if _is_same(source, target):
            return
        raise PrepareError(
            f"data {item.name!r}: at: {item.at} is taken: the code has {name}",
            hint="choose another `at:`, or leave that file out of the code",
        ) from None
    for entry in sorted(os.listdir(source)):
        if os.path.lexists(target / entry) or not os.path.isdir(source / entry):
            _put(item, source / entry, work, f"{name}/{entry}")
        else:
            os.symlink(source / entry, target / entry)


def _is_same(source: Path, target: Path) -> bool:
    return source.is_file() and target.is_file() and filecmp.cmp(source, target, shallow=False)


def _place(item: DataItem, store: Store, cache: Path, note: Note, code: Path, env: Mapping[str, str]) -> Path:
    if item.path is not None:
        return _in_place(item, os.path.expanduser(item.path))  # noqa: PTH111
    if item.blob is not None:
        return _blob(item, item.blob, store, cache, note)
    if item.url is not None:
        return _url(item, item.url, cache, note)
    if item.run:
        return _computed(item, cache, note, code, env)
    raise PrepareError(f"data {item.name!r} has no source", hint="submit the job again")


def _in_place(item: DataItem, path: str) -> Path:
    if not os.path.exists(path):
        raise MissingError(
            f"data {item.name!r}: {path} does not exist on this machine",
            hint="mount it there, or give a path in the project or a URL: hostler brings those",
        )
    return Path(path)


def _blob(item: DataItem, sha: str, store: Store, cache: Path, note: Note) -> Path:
    what = f"data {item.name!r}"

    def make(place: Path) -> None:
        note(f"unpacking {what}")
        unpack_checked(
            lambda archive: bulk.fetch(store, sha, archive), layout.data(sha), sha, place, what=what
        )

    folder = once(cache / check_part(sha), make, what=f"unpacking {what}", note=note)
    return folder / check_name(item) if item.out else folder


def _url(item: DataItem, url: str, cache: Path, note: Note) -> Path:
    local = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    if local and os.path.isdir(local):
        return Path(local)

    def make(place: Path) -> None:
        note(f"fetching {url}")
        fetch(url, place)

    folder = cache / f"url-{hashlib.sha256(url.encode()).hexdigest()[:40]}"
    return found_at(url, once(folder, make, what=f"fetching {url}", note=note))


def _computed(item: DataItem, cache: Path, note: Note, code: Path, env: Mapping[str, str]) -> Path:
    what = f"data {item.name!r}"
    out = check_name(item)

    def make(place: Path) -> None:
        note(f"preparing {what}")
        work = working_copy(code, place / "work")
        command.run(item.run, what=f"preparing {what}", cwd=work, environ=env)
        path = work / out
        if not os.path.realpath(path).startswith(f"{os.path.realpath(work)}/") or not path.exists():
            raise PrepareError(
                f"{what}: its command did not write {out}",
                hint="`out` names what the command writes in its folder",
            )
        path.resolve().rename(place / "out")
        shutil.rmtree(work)

    key = hashlib.sha256(json.dumps([list(item.run), out, identity(code)]).encode()).hexdigest()[:40]
    return once(cache / f"run-{key}", make, what=f"preparing {what}", note=note) / "out"


def check_name(item: DataItem) -> str:
    """Its `out`, if that is a path that stays inside."""
    parts = (item.out or "").rstrip("/").split("/")
    if not item.out or item.out.startswith("/") or ".." in parts:
        raise PrepareError(f"data {item.name!r}: `out` must be a path inside its folder, not {item.out!r}")
    return "/".join(part for part in parts if part not in ("", "."))


def fetch(url: str, place: Path) -> None:
    """Fill the folder with what the URL holds: a file, an unpacked archive, or all files under a prefix.
    It is complete or an error: a shorter answer than announced is refused."""
    name = leaf(url)
    if urlsplit(url).scheme == HUB:
        from hostler.worker.prepare import hub_files  # few runs need it

        hub_files.fetch(url, place, name)
    elif urlsplit(url).scheme not in WEB:
        _from_bucket(url, name, place)
    else:
        _from_web(url, place / name)
    if name and is_archive(name):
        archive = place.with_name(f"{place.name}.archive")
        (place / name).rename(archive)
        try:
            unpack(archive, place, what=url)
        finally:
            archive.unlink()


def found_at(url: str, place: Path) -> Path:
    """Where in the folder the thing itself is: the folder, unless it is a single file."""
    name = leaf(url)
    return place / name if name and not is_archive(name) else place


def leaf(url: str) -> str:
    """The file's name; '' for a bucket's prefix, which ends in '/'."""
    parts = urlsplit(url)
    if parts.scheme == HUB:
        from hostler.worker.prepare import hub_files

        return hub_files.leaf(url)
    name = os.path.basename(unquote(parts.path).replace("\0", ""))
    if not name and parts.scheme not in WEB:
        return ""
    return name if name not in ("", ".", "..") else "data"


def _from_web(url: str, path: Path) -> None:
    import http.client  # these bring ssl, and few runs fetch anything
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "hostler"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, open(path, "wb") as file:
            announced = answer.headers.get("Content-Length")
            got = 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                got += len(chunk)
    except urllib.error.HTTPError as error:
        kind = MissingError if error.code in (404, 410) else PrepareError
        raise kind(f"cannot fetch {url}: {error.code} {error.reason}") from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise PrepareError(f"cannot fetch {url}: {error}") from error
    if announced is not None and announced.isdigit() and int(announced) != got:
        raise PrepareError(f"cannot fetch {url}: got {got} bytes of {announced}")


def _from_bucket(url: str, name: str, place: Path) -> None:
    from hostler.store import open_store  # the driver may be missing where no bucket is used

    store = open_store(url.rstrip("/").rpartition("/")[0] if name else url.rstrip("/"))
    if not name:
        _all_of(store, url, place)
        return
    try:
        store.download(name, place / name)
    except NotFound as error:
        raise MissingError(f"{url} does not exist", hint="end it with / if it is a folder") from error


def _all_of(store: Store, url: str, place: Path) -> None:
    count = 0
    for entry in store.list(""):
        parts = entry.key.split("/")
        if entry.key.endswith("/"):
            continue  # a marker some tools leave for an empty folder
        if ".." in parts or "" in parts:
            raise PrepareError(f"{url} holds a key that is not a path: {entry.key!r}")
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        store.download(entry.key, path)
        count += 1
    if count == 0:
        raise MissingError(f"nothing was found under {url}")
