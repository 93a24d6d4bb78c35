"""Sends files to another machine as one tar stream, packed while they are found, compressed if both can."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from hostler.errors import HostError, MachineError
from hostler.fleet.snapshot.tree import TreeNode
from hostler.remote import refusal
from hostler.remote.connection import Connection

BLOCKS = "--blocking-factor=128"  # 64 kB at a time: as much as a pipe holds
PACK = ("tar", "--create", BLOCKS, "--no-recursion", "--null", "--files-from=-", "--file=-")
UNPACK = f'tar --extract {BLOCKS} --no-same-owner --no-same-permissions --directory "$0" --file=-'
BATCH = 1 << 14  # bytes of names that are told at a time


class Stream:
    """Made, given nodes, finished: then all of it is there, or an error says why not."""

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
