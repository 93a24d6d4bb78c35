"""Lists a folder without reading its files: names, kinds, sizes and stamps, sorted.

Nothing is followed: a symbolic link is kept as a link if it stays inside, left out and named if not.
Ignored folders, environments of Python and stores are never entered. Sockets, pipes and devices are left
out and named.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from hostler.fleet.snapshot.ignore import Ignore
from hostler.frozen import dataclass
from hostler.records import layout

FILE, FOLDER, LINK = "file", "folder", "link"
COARSE = 2.0  # seconds that a file system may round a time down by
FINE = 0.05  # by which one does that shows parts of seconds: a tick of the clock
_NAME = attrgetter("name")


class TreeNode(NamedTuple):
    """A file, folder or link to send. `stamp` changes whenever its content may have changed."""

    name: str  # relative, '/'-separated; undecodable bytes as surrogates
    kind: str
    size: int = 0
    executable: bool = False
    stamp: tuple[int, int, int] = (0, 0, 0)  # mtime_ns, ctime_ns, inode
    target: str = ""  # of a link


Leaf = Callable[[Path, "os.DirEntry[str]", str], "TreeNode | str"]


@dataclass(frozen=True)
class Tree:
    root: Path
    nodes: tuple[TreeNode, ...]
    left_out: tuple[str, ...] = ()  # one line each: what could not be taken along, and why
    brought: Mapping[str, Path] = field(default_factory=dict)  # files that lie elsewhere, named by content

    def bring(self, name: str, path: Path, sha: str) -> Tree:
        """The tree with a file of this content that is not under its root."""
        node = TreeNode(name, FILE, path.stat().st_size, target=sha)
        nodes = sorted([*self.nodes, node], key=lambda node: os.fsencode(node.name))
        return replace(self, nodes=tuple(nodes), brought={**self.brought, name: path})

    @property
    def files(self) -> tuple[TreeNode, ...]:
        return tuple(node for node in self.nodes if node.kind == FILE)

    @property
    def size(self) -> int:
        return sum(node.size for node in self.files)

    @property
    def newest(self) -> float:
        """Seconds since 1970 of the last change of anything in it."""
        return max((max(node.stamp[:2]) for node in self.nodes), default=0) / 1e9

    def signature(self) -> str:
        """Equal only if nothing in the tree was written to."""
        digest = hashlib.sha256()
        for n in self.nodes:
            stamp = n.stamp if n.kind == FILE else ()
            row = repr((n.name, n.kind, n.size, n.executable, stamp, n.target))
            digest.update(row.encode("utf-8", "surrogateescape") + b"\n")
        return digest.hexdigest()


def scan(
    root: Path,
    ignore: Ignore | None,
    exclude: tuple[Path, ...] = (),
    meet: Callable[[TreeNode], None] = lambda node: None,
    *,
    names: bool = False,
) -> Tree:
    """Everything under root that the rules (already those in force at root) let through; `meet` gets each as
    it is found, folders before what is in them. `names`: of files no more than that; see `stamped`."""
    real = Path(os.path.realpath(root))
    shut = frozenset(os.path.realpath(path) for path in exclude)
    nodes: list[TreeNode] = []
    left_out: list[str] = []
    for found in _walk(real, real, "", ignore, shut, _named if names else _leaf):
        if isinstance(found, TreeNode):
            nodes.append(found)
            meet(found)
        else:
            left_out.append(found)
    return Tree(real, tuple(sorted(nodes, key=lambda node: os.fsencode(node.name))), tuple(left_out))


def stamped(tree: Tree, since: float) -> Tree:
    """The tree of a walk for names that was begun at `since`, with sizes and stamps as they are now: none for
    a file that may have been written to since then."""
    nodes = []
    for node in tree.nodes:
        found = _stat(f"{tree.root}/{node.name}") if node.kind == FILE else None
        if found is not None:
            node = _file(node.name, found)
            node = node if _is_older(found, since) else node._replace(stamp=(0, 0, 0))
        nodes.append(node)
    return Tree(tree.root, tuple(nodes), tree.left_out)


def _is_older(found: os.stat_result, than: float) -> bool:
    """Whether it was last written to before that moment, whatever the file system makes of times."""
    rounds = FINE if found.st_ctime_ns % 1_000_000_000 else COARSE
    return found.st_ctime < than - rounds


def shown(name: str) -> str:
    """A name as it can be printed on one line."""
    plain = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return plain if plain.isprintable() and plain == name else repr(name)


def _walk(
    root: Path, folder: Path, name: str, ignore: Ignore | None, shut: frozenset[str], leaf: Leaf
) -> Iterator[TreeNode | str]:
    try:
        entries = sorted(os.scandir(folder), key=_NAME)
    except OSError as error:
        yield f"{shown(name)}: {error.strerror}"
        return
    for entry in entries:
        inner = f"{name}/{entry.name}" if name else entry.name
        is_dir = entry.is_dir(follow_symlinks=False)
        if (ignore is not None and ignore.ignores(inner, is_dir)) or entry.path in shut:
            continue
        if is_dir:
            path = Path(entry.path)
            if ignore is not None and ((path / "pyvenv.cfg").is_file() or is_store(path)):
                continue
            rules = ignore.inside(inner, path) if ignore else None
            below = list(_walk(root, path, inner, rules, shut, leaf))
            if below or not any(os.scandir(path)):  # a folder of which all is ignored is ignored
                yield TreeNode(inner, FOLDER)
                yield from below
        else:
            yield leaf(root, entry, inner)


def is_store(folder: Path) -> bool:
    """Whether it is a store of hostler's, whosever: known by its project's record."""
    try:
        record = json.loads((folder / layout.project(1)).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and {"format", "beat", "lease"} <= record.keys()


def _named(root: Path, entry: os.DirEntry[str], name: str) -> TreeNode | str:
    """The node by what the folder's listing says, without a stat for a file."""
    return TreeNode(name, FILE) if entry.is_file(follow_symlinks=False) else _leaf(root, entry, name)


def _leaf(root: Path, entry: os.DirEntry[str], name: str) -> TreeNode | str:
    try:
        if entry.is_symlink():
            return _link(root, entry.path, name)
        found = entry.stat(follow_symlinks=False)
    except OSError as error:
        return f"{shown(name)}: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return f"{shown(name)}: neither a file nor a folder"
    return _file(name, found)


def _file(name: str, found: os.stat_result) -> TreeNode:
    stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return TreeNode(name, FILE, found.st_size, bool(found.st_mode & stat.S_IXUSR), stamp)


def _stat(path: str) -> os.stat_result | None:
    """None if it is gone."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def _link(root: Path, path: str, name: str) -> TreeNode | str:
    """The link, relative, if it stays inside whichever way it is read; a line that names it otherwise."""
    target = os.readlink(path)
    if target.startswith("/"):
        target = os.path.relpath(os.path.realpath(path), os.path.dirname(path))
    by_text = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if not (_within(root, by_text) and _within(root, os.path.realpath(path))):
        return f"{shown(name)}: a link that leads out of the folder, to {shown(os.readlink(path))}"
    return TreeNode(name, LINK, target=target)


def _within(root: Path, path: str) -> bool:
    return path == str(root) or path.startswith(f"{str(root).rstrip('/')}/")
