"""The code as it is at submission, as one archive named by its content.

Equal trees have equal names, so that a snapshot is uploaded once however often it is submitted; again when
it has become old, so that `hostler gc` leaves it. The record beside it (file list, commit, diff) is written
last and is of the first submission: a record means that the archive is there.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from hostler import env, made_files
from hostler.errors import MissingError
from hostler.fleet.snapshot import memo
from hostler.fleet.snapshot.archive import pack
from hostler.fleet.snapshot.ignore import for_project, is_taken_back
from hostler.fleet.snapshot.size_limit import check_size
from hostler.fleet.snapshot.tree import FOLDER, Tree, TreeNode, scan
from hostler.frozen import dataclass
from hostler.records import layout, reuse
from hostler.settings import Sizes
from hostler.store.base import NotFound, Store

FORMAT = 1
KEEP = 7 * 86400.0  # seconds an archive stays in the cache after its last use


@dataclass(frozen=True)
class Snapshot:
    sha: str
    archive: Path  # in this machine's cache
    files: tuple[tuple[str, int], ...]  # name, size
    size: int  # of the files, in bytes
    commit: str | None = None
    dirty: bool = False
    diff: str | None = None
    notes: tuple[str, ...] = ()  # one line each: what was left out or changed meanwhile


def take(
    folder: Path,
    limits: Sizes,
    *,
    exclude: tuple[Path, ...] = (),
    bring: Callable[[Tree], Tree] = lambda tree: tree,
    cache: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> Snapshot:
    """Pack the folder, unless nothing in it was written to since it was last packed. `bring` adds files that
    lie elsewhere."""
    if not folder.is_dir():
        raise MissingError(f"the folder {folder} does not exist")
    git = read(folder)
    tree = bring(_without_made(_scan(folder, git, exclude), cache or env.cache_dir()))
    check_size(tree, limits)
    place = (cache or env.cache_dir()) / "snapshots"
    sha, disturbed = _packed(tree, place, memo.of(folder, place.parent, place.name), clock())
    return Snapshot(
        sha=sha,
        archive=_archive(place, sha),
        files=tuple((node.name, node.size) for node in tree.files),
        size=tree.size,
        commit=git.commit if git else None,
        dirty=git.dirty if git else False,
        diff=git.diff if git else None,
        notes=tree.left_out + disturbed,
    )


def upload(store: Store, snapshot: Snapshot) -> bool:
    """Put the snapshot into the store; False if it was there and is not old."""
    record = layout.code_record(snapshot.sha)
    if reuse.is_fresh(store, record, time.time()):
        return False
    try:
        first = store.get(record).data
    except NotFound:
        first = json.dumps(_record(snapshot)).encode()
    store.upload(snapshot.archive, layout.code(snapshot.sha))
    store.put(record, first)
    return True


def tree_of(
    folder: Path,
    exclude: tuple[Path, ...] = (),
    meet: Callable[[TreeNode], None] = lambda node: None,
    *,
    names: bool = False,
) -> Tree:
    """Files of a folder that belong to the project; `meet` gets each as it is found; `names`: no stats."""
    return _scan(folder, read(folder), exclude, meet, names=names)


def _scan(
    folder: Path,
    git: GitState | None,
    exclude: tuple[Path, ...],
    meet: Callable[[TreeNode], None] = lambda node: None,
    *,
    names: bool = False,
) -> Tree:
    real = Path(os.path.realpath(folder))
    rules = for_project(real, git.top, git.tracked_ignored) if git else for_project(real)
    return scan(real, rules, exclude, meet, names=names)


def _without_made(tree: Tree, cache: Path) -> Tree:
    """The tree without reports, plots and tables of hostler's own, and folders that hold nothing else."""
    marks, root = made_files.known(cache), tree.root
    nodes = (node for node in tree.files if made_files.holds(marks, root / node.name, node.size))
    made = {node.name for node in nodes if not is_taken_back(root, node.name)}
    if not made:
        return tree
    tree_nodes = [node for node in tree.nodes if node.name not in made]
    held = {above for node in tree_nodes if node.kind != FOLDER for above in _above(node.name)}
    emptied = {above for name in made for above in _above(name)} - held
    return replace(tree, nodes=tuple(node for node in tree_nodes if node.name not in emptied))


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _packed(tree: Tree, place: Path, known: memo.Memo, now: float) -> tuple[str, tuple[str, ...]]:
    sha = known.recall(tree)
    if sha is not None and _archive(place, sha).is_file():
        os.utime(_archive(place, sha))
        return sha, ()
    place.mkdir(parents=True, exist_ok=True)
    _forget_old(place, now)
    fresh = place / f"{secrets.token_hex(8)}.tmp"
    try:
        packed = pack(tree, fresh, compress=True)
        os.replace(fresh, _archive(place, packed.sha))
    finally:
        fresh.unlink(missing_ok=True)
    if not packed.disturbed:
        known.keep(tree, packed.sha, now)
    return packed.sha, packed.disturbed


def _archive(place: Path, sha: str) -> Path:
    return place / f"{sha}.tar.gz"


def _forget_old(place: Path, now: float) -> None:
    for path in place.iterdir():
        try:
            if path.suffix != ".json" and now - path.stat().st_mtime > KEEP:
                path.unlink()
        except FileNotFoundError:
            continue  # another process was faster


def _record(snapshot: Snapshot) -> dict[str, object]:
    return {
        "format": FORMAT,
        "sha256": snapshot.sha,
        "files": [list(row) for row in snapshot.files],
        "size": snapshot.size,
        "commit": snapshot.commit,
        "dirty": snapshot.dirty,
        "diff": snapshot.diff,
        "notes": list(snapshot.notes),
    }


# What git says about a folder: commit, whether it differs, how. Absent git is no error.
#
# Nothing is written: git is told to take no locks.


DIFF_MAX = 1_000_000  # bytes of diff kept


@dataclass(frozen=True)
class GitState:
    top: Path  # root of the working tree
    commit: str | None  # None before the first commit
    dirty: bool
    diff: str | None
    tracked_ignored: tuple[str, ...]  # tracked files that the ignore rules name, relative to the folder


def read(folder: Path) -> GitState | None:
    """None without git, without a repository, or where git refuses to read it."""
    if not _may_be_one(folder):
        return None
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return None
    head = _git(folder, "rev-parse", "--verify", "-q", "HEAD")
    commit = _text(head).strip() or None
    untracked = _names(_git(folder, "ls-files", "--others", "--exclude-standard", "-z"))
    diff = (
        _git(folder, "diff", "HEAD", "--no-ext-diff", "--no-color", "--no-textconv", "--", ".")
        if commit
        else b""
    )
    return GitState(
        top=Path(_text(top).removesuffix("\n")),
        commit=commit,
        dirty=bool(diff or untracked),
        diff=_shown(diff or b"", untracked) if commit else None,
        tracked_ignored=_names(_git(folder, "ls-files", "-c", "-i", "--exclude-standard", "-z")),
    )


def _may_be_one(folder: Path) -> bool:
    """Whether git is worth asking: starting it costs more than a look at the folders above."""
    above = (folder, *folder.absolute().parents)
    return "GIT_DIR" in env.inherited() or any((path / ".git").exists() for path in above)


def _shown(diff: bytes, untracked: tuple[str, ...]) -> str:
    text = diff.decode("utf-8", "replace")
    if len(diff) >= DIFF_MAX:
        text += f"\n# cut at {DIFF_MAX} bytes\n"
    room = DIFF_MAX // 4
    return text + "".join(f"# untracked: {name!r}\n" for name in untracked)[:room]


def _git(folder: Path, *words: str) -> bytes | None:
    """The first megabyte of what git prints; None if it fails."""
    command = ["git", "-C", str(folder), *words]
    quiet = {**env.inherited(), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        with subprocess.Popen(
            command, env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as git:
            assert git.stdout is not None
            out = git.stdout.read(DIFF_MAX)
            if len(out) == DIFF_MAX:
                git.kill()
                return out
    except FileNotFoundError:
        return None
    return out if git.returncode == 0 else None


def _names(out: bytes | None) -> tuple[str, ...]:
    return tuple(_text(name) for name in (out or b"").split(b"\0") if name)


def _text(out: bytes | None) -> str:
    return (out or b"").decode("utf-8", "surrogateescape")
