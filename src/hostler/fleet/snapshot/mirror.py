"""Mirrors a folder to another machine: one way, by the rules that say what a project's code is.

What is not changed is not sent: stats tell here, and the far side tells whether anybody touched what was
sent. The first copy is one stream of tar, later ones are rsync's. What is deleted here is deleted there; what
others put there is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hostler.errors import HostError, HostUnreachable, MachineError, UsageError
from hostler.fleet.snapshot import snapshot
from hostler.fleet.snapshot.tree import FILE, FOLDER, Tree, TreeNode, stamped
from hostler.frozen import dataclass
from hostler.remote import refusal
from hostler.remote.channel import Channel, Cut
from hostler.remote.connection import Connection
from hostler.remote.frames import Frame
from hostler.remote.opening import open_channel
from hostler.remote.target import SshTarget
from hostler.store.registry import is_network

BLOCKS = "--blocking-factor=128"  # 64 kB at a time: as much as a pipe holds
PACK = ("tar", "--create", BLOCKS, "--no-recursion", "--null", "--files-from=-", "--file=-")
UNPACK = f'tar --extract {BLOCKS} --no-same-owner --no-same-permissions --directory "$0" --file=-'
BATCH = 1 << 14  # bytes of names that are told at a time

FAR = "hostler.remote.mirrored"
ANSWER = 120.0
VANISHED = 24  # rsync's code: a file was deleted while it was to be sent; the next push says so
CUT = (12, 30, 255)  # its codes for a connection that ended


@dataclass(frozen=True)
class Pushed:
    sent: int
    removed: int
    seconds: float


class Mirror:
    """`push` makes the far folder like the one here; the connection stays open between two pushes."""

    def __init__(
        self, root: Path, target: SshTarget, to: str, cache: Path, exclude: tuple[Path, ...] = ()
    ) -> None:
        self._root, self._exclude = Path(os.path.realpath(root)), exclude
        self._connection, self._to = Connection(target), to.removeprefix("~/")
        name = hashlib.sha256(f"{self._root}\0{target}\0{self._to}".encode()).hexdigest()[:32]
        self._memo = cache / "mirrors" / f"{name}.json"
        self._token, self._sent, self._glance = self._recall()
        self._channel: Channel | None = None
        self._settling: Future[None] | None = None
        self._notes = ThreadPoolExecutor(1, thread_name_prefix="mirror")

    def push(self, *, force: bool = False) -> Pushed:
        begun = time.monotonic()
        self._settled()
        asked = self._far().send("state", token=self._token)
        same = self._glance is not None and self._glance.holds()
        frame = self._answer(asked)
        if frame.header["foreign"] and not force:
            raise UsageError(
                f"{self._connection.target}:{self._to} holds files that hostler did not put there",
                hint="--to another folder, or --force to mirror into it; they are left alone",
            )
        drifted = frame.header.get("drifted", [])
        if same and frame.header["token"] == self._token and not drifted:
            return Pushed(0, 0, time.monotonic() - begun)
        if not frame.header["token"]:
            return Pushed(self._first(frame.header["zstd"]), 0, time.monotonic() - begun)
        known = self._sent if frame.header["token"] == self._token else json.loads(frame.body)
        sent, removed = self._bring(known, set(drifted))
        return Pushed(sent, removed, time.monotonic() - begun)

    def close(self) -> None:
        try:
            self._settled()
        finally:
            self._notes.shutdown()
            if self._channel is not None:
                self._channel.hang_up()
                self._channel = None

    def _first(self, zstd: bool) -> int:
        """Everything, sent while it is found. What it was is looked at later: a file that was written to
        meanwhile counts as changed. Not where another machine's clock stamps files."""
        begun, names = time.time(), not is_network(self._root)
        stream = TarStream(self._connection, self._root, self._to, zstd=zstd)
        tree = snapshot.tree_of(self._root, self._exclude, stream.add, names=names)
        stream.finish()
        self._settle(tree, secrets.token_hex(8), begun if names else None)
        return sum(node.kind != FOLDER for node in tree.nodes)

    def _bring(self, known: dict[str, Any], drifted: set[str]) -> tuple[int, int]:
        tree = snapshot.tree_of(self._root, self._exclude)
        stamps = _stamps(tree)
        gone = [name for name, was in known.items() if stamps.get(name, [None])[0] != was[0]]
        changed = [n for n in tree.nodes if n.name in drifted or known.get(n.name) != stamps[n.name]]
        if gone:
            self._ask("remove", json.dumps(gone).encode())
        if changed:
            self._rsync(tree.root, changed)
        self._settle(tree, secrets.token_hex(8) if changed or gone else self._token or secrets.token_hex(8))
        return sum(node.kind != FOLDER for node in changed), len(gone)

    def _settle(self, tree: Tree, token: str, since: float | None = None) -> None:
        """Both sides write down what is there, after it is there; the next question waits for it."""
        channel = self._far()

        def write() -> None:
            whole = tree if since is None else stamped(tree, since)
            stamps = _stamps(whole)
            asked = channel.send("settle", json.dumps(stamps).encode(), token=token)
            self._remember(token, stamps, whole)
            self._answer(asked)

        self._settling = self._notes.submit(write)

    def _rsync(self, root: Path, nodes: Sequence[TreeNode]) -> None:
        """-I: they are known to differ, and a second save within a second has the same time to it."""
        target = self._connection.target
        host = f"[{target.host}]" if ":" in target.host else target.host
        shell = shlex.join(["ssh", *self._connection.options])
        words = ["rsync", "-aI", "-s", "--no-owner", "--no-group", "--from0", "--files-from=-", "-e", shell]
        names = b"".join(map(named, nodes))
        try:
            done = subprocess.run(
                [*words, f"{root}/", f"{host}:{self._to}/"], input=names, capture_output=True
            )
        except FileNotFoundError:
            self._without_rsync(root, nodes)
            return
        if done.returncode == 127 or b"command not found" in done.stderr:  # there is none on the far side
            self._without_rsync(root, nodes)
        elif done.returncode and done.returncode != VANISHED:
            code = 255 if done.returncode in CUT else done.returncode
            raise refusal.read(str(target), done.stderr.decode("utf-8", "replace"), code)

    def _without_rsync(self, root: Path, nodes: Sequence[TreeNode]) -> None:
        stream = TarStream(self._connection, root, self._to, zstd=False)
        for node in nodes:
            stream.add(node)
        stream.finish()

    def _settled(self) -> None:
        settling, self._settling = self._settling, None
        if settling is not None:
            settling.result()

    def _far(self) -> Channel:
        if self._channel is None or not self._channel.is_open:
            self._channel = open_channel(self._connection, FAR, {"path": self._to})
        return self._channel

    def _ask(self, op: str, body: bytes, **fields: Any) -> Frame:
        return self._answer(self._far().send(op, body, **fields))

    def _answer(self, asked: Future[Frame]) -> Frame:
        try:
            return self._far().wait(asked, ANSWER)
        except Cut as error:
            raise HostUnreachable(
                f"{self._connection.target} cannot be reached: {error}", "is it up?"
            ) from error

    def _recall(self) -> tuple[str, dict[str, Any], Glance | None]:
        try:
            kept = json.loads(self._memo.read_text())
            glance = from_json(kept["glance"]) if kept["glance"] else None
            return str(kept["token"]), dict(kept["sent"]), glance
        except (OSError, ValueError, KeyError, TypeError):
            return "", {}, None

    def _remember(self, token: str, sent: dict[str, Any], tree: Tree) -> None:
        self._token, self._sent, self._glance = token, sent, of(tree, time.time())
        self._memo.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._memo.with_suffix(f".{os.getpid()}")
        seen = self._glance.to_json() if self._glance else None
        fresh.write_text(json.dumps({"token": token, "sent": sent, "glance": seen}))
        fresh.replace(self._memo)


def _stamps(tree: Tree) -> dict[str, list[Any]]:
    return {node.name: _stamp(node) for node in tree.nodes}


def _stamp(node: TreeNode) -> list[Any]:
    """A value that changes with the content; a folder is there or not."""
    return (
        [node.kind]
        if node.kind == FOLDER
        else [node.kind, *node.stamp, node.size, node.executable, node.target]
    )


# Whether a folder is as it was when it was last walked, told by stats alone.
#
# A file that was written to has another stamp, a folder in which something came or went has another time: if
# all are as they were, walking it again would find the same. What changed within the last seconds is never
# trusted, because a clock may be too coarse to show the next change.


SETTLED = 2.0  # seconds


@dataclass(frozen=True)
class Glance:
    """Paths and what their stats were: of files all that a write changes, of folders and rules their time."""

    files: tuple[tuple[str, int, int, int], ...]  # path, mtime_ns, ctime_ns, inode
    folders: tuple[tuple[str, int], ...]  # path, mtime_ns; -1: not there

    def holds(self) -> bool:
        """Nothing has changed since."""
        try:
            found = list(map(os.lstat, [file[0] for file in self.files]))
        except OSError:
            return False
        if any(
            (f.st_mtime_ns, f.st_ctime_ns, f.st_ino) != (was[1], was[2], was[3])
            for f, was in zip(found, self.files, strict=True)
        ):
            return False
        return all(_time(path) == was for path, was in self.folders)

    def to_json(self) -> list[Any]:
        return [self.files, self.folders]


def of(tree: Tree, now: float) -> Glance | None:
    """A glance at a tree that was just walked; None where it is too young to be trusted."""
    root = str(tree.root)
    shown = [node for node in tree.nodes if node.kind == FILE]
    folders = ["", *(node.name for node in tree.nodes if node.kind == FOLDER)]
    times = [
        *(_stamp_of(root, name) for name in folders),
        *((path, _time(path)) for path in _rules(tree.root)),
    ]
    if now - max([tree.newest, *(time / 1e9 for _, time in times)]) < SETTLED:
        return None
    return Glance(tuple((f"{root}/{node.name}", *node.stamp) for node in shown), tuple(times))


def from_json(value: Sequence[Any]) -> Glance:
    files, folders = value
    return Glance(tuple(map(tuple, files)), tuple(map(tuple, folders)))


def _rules(root: Path) -> list[str]:
    """Files of git, up to the repository's top, that decide which files belong to the folder."""
    found: list[str] = []
    for folder in (root, *root.parents):
        found.append(f"{folder}/.gitignore")
        if (folder / ".git").exists():
            return [*found, f"{folder}/.git/index", f"{folder}/.git/info/exclude"]
    return []


def _stamp_of(root: str, name: str) -> tuple[str, int]:
    path = f"{root}/{name}" if name else root
    return path, _time(path)


def _time(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1


class TarStream:
    """Sends files to another machine as one tar stream, packed while they are found, compressed if both can.

    Made, given nodes, finished: then all of it is there, or an error says why not.
    """

    def __init__(self, connection: Connection, root: Path, to: str, *, zstd: bool) -> None:
        self._host, self._names = str(connection.target), bytearray()
        squeeze = zstd and shutil.which("zstd") is not None
        try:
            self._tar = subprocess.Popen(PACK, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except FileNotFoundError:
            raise MachineError("tar is not installed here", "install tar") from None
        self._last = self._squeezed() if squeeze else self._tar
        command = connection.command(["/bin/sh", "-c", f"zstd -dc | {UNPACK}" if squeeze else UNPACK, to])
        self._ship = subprocess.Popen(command, stdin=self._last.stdout, stderr=subprocess.PIPE)
        for process in {self._tar, self._last}:
            assert process.stdout is not None
            process.stdout.close()

    def add(self, node: TreeNode) -> None:
        self._names += named(node)
        if len(self._names) >= BATCH:
            self._tell()

    def finish(self) -> None:
        self._tell()
        assert self._tar.stdin is not None
        try:
            self._tar.stdin.close()
        except BrokenPipeError:
            pass  # the far side says why
        said = self._ship.communicate()[1]
        for process in {self._tar, self._last}:
            process.wait()
        if self._ship.returncode:
            raise self._refused(said.decode("utf-8", "replace"))

    def _squeezed(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["zstd", "-1", "-qc"], stdin=self._tar.stdout, stdout=subprocess.PIPE)

    def _tell(self) -> None:
        assert self._tar.stdin is not None
        try:
            self._tar.stdin.write(self._names)
        except BrokenPipeError:
            pass  # the far side says why
        self._names.clear()

    def _refused(self, said: str) -> HostError:
        return refusal.read(self._host, said, self._ship.returncode)


def named(node: TreeNode) -> bytes:
    return os.fsencode(node.name) + b"\0"
