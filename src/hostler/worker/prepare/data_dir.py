"""A run's $HOSTLER_DATA: one folder of links, name to where the data lies on this machine.

What has to be unpacked, fetched or computed is so once per machine; what is at an absolute path is
used in place. Nothing is copied per run.
"""

from __future__ import annotations

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
from hostler.spec.names import check_part
from hostler.store.base import Store
from hostler.worker.prepare import command, fetch
from hostler.worker.prepare.code import identity, unpack_checked, working_copy
from hostler.worker.prepare.once import Note, once


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
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for item in items:
        os.symlink(_place(item, store, cache / "data", note, code, env), folder / check_part(item.name))
    return folder


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
        fetch.fetch(url, place)

    folder = cache / f"url-{hashlib.sha256(url.encode()).hexdigest()[:40]}"
    return fetch.found_at(url, once(folder, make, what=f"fetching {url}", note=note))


def _computed(item: DataItem, cache: Path, note: Note, code: Path, env: Mapping[str, str]) -> Path:
    what = f"data {item.name!r}"
    out = check_name(item)

    def make(place: Path) -> None:
        note(f"preparing {what}")
        work = working_copy(code, place / "work")
        command.run(item.run, what=f"preparing {what}", cwd=work, environ=env)
        left = work / out
        if not os.path.realpath(left).startswith(f"{os.path.realpath(work)}/") or not left.exists():
            raise PrepareError(
                f"{what}: its command did not write {out}",
                hint="`out` names what the command writes in its folder",
            )
        left.resolve().rename(place / "out")
        shutil.rmtree(work)

    key = hashlib.sha256(json.dumps([list(item.run), out, identity(code)]).encode()).hexdigest()[:40]
    return once(cache / f"run-{key}", make, what=f"preparing {what}", note=note) / "out"


def check_name(item: DataItem) -> str:
    """Its `out`, if that is a path that stays inside."""
    parts = (item.out or "").rstrip("/").split("/")
    if not item.out or item.out.startswith("/") or ".." in parts:
        raise PrepareError(f"data {item.name!r}: `out` must be a path inside its folder, not {item.out!r}")
    return "/".join(part for part in parts if part not in ("", "."))
