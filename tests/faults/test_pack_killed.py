"""Packers that are killed before each of their writes and deletions: readers see what they saw before, and
the next packer finishes. By SIGKILL on a folder; on buckets, which take a request whole or not at all, the
packer sends nothing from then on."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import servers
from hostler.emulators.gcs import GcsEmulator
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.sweep import sweeps
from hostler.store import Store, open_store
from packed_world import no_wait, random_sweep, seen

SEED, RUNS = 3, 2


class Dying:
    """A store whose user dies before the write that is one too many."""

    def __init__(self, inner: Store, left: int, die: Callable[[], None]) -> None:
        self.inner, self.left, self._die = inner, left, die

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            self._die()

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        self._step()
        return self.inner.put(key, data, if_absent=if_absent)

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._step()
            self.inner.delete(key)


class Killed(BaseException):
    pass


def pack(url: str, left: int, die: Callable[[], None]) -> None:
    store = PackedStore(Dying(open_store(url), left, die))
    packer.pack(store, sweeps.load(store, "s"), wait=no_wait)


def killed_by_signal(url: str, left: int) -> bool:
    """Whether a process that packs was killed that had so many writes to live."""
    pid = os.fork()
    if not pid:
        try:
            pack(url, left, lambda: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def cut_off(url: str, left: int) -> bool:
    def die() -> None:
        raise Killed

    try:
        pack(url, left, die)
    except Killed:
        return True
    return False


def objects(store: PackedStore) -> list[str]:
    every = [entry.key for entry in store.inner.list("")]
    return [key for key in every if "/log/" in key or "/ends/" in key or key.startswith("runs/")]


def judge(url: str, left: int, kill: Callable[[str, int], bool]) -> bool:
    """Kill a packer of this store and pack again: nothing may differ. Whether it lived to be killed."""
    store = open_store(url)
    job = sweeps.load(store, "s")
    before = seen(store, job)
    dead = kill(url, left)
    assert seen(PackedStore(store), job) == before, left
    packer.pack(PackedStore(store), job, no_wait)
    assert seen(PackedStore(store), job) == before, left
    assert objects(PackedStore(store)) == [], left
    return dead


def test_packer_of_a_folder_killed_before_any_write_loses_nothing(tmp_path: Path) -> None:
    random_sweep(open_store(str(tmp_path / "first")), SEED, RUNS)
    left = 0
    while judge(shutil.copytree(tmp_path / "first", tmp_path / f"{left}").as_posix(), left, killed_by_signal):
        left = following(left)
    assert left > 12


def following(left: int, step: int = 4) -> int:
    """Each of the writes that seal, and some of the many that delete."""
    return left + (1 if left < 6 else step)


def of_a_bucket(url: str, step: int = 4) -> None:
    left = 0
    while True:
        random_sweep(open_store(f"{url}/{left}"), SEED, RUNS)
        if not judge(f"{url}/{left}", left, cut_off):
            break
        left = following(left, step)
    assert left > 12


def test_packer_of_seaweedfs_cut_off_before_any_write_loses_nothing(seaweed_store_url: str) -> None:
    of_a_bucket(seaweed_store_url)


def test_google_storage_packer_cut_off_before_any_write_loses_nothing(gcs: GcsEmulator) -> None:
    of_a_bucket(f"gs://{servers.BUCKET}/packs")


def test_packer_of_azurite_cut_off_before_any_write_loses_nothing(azurite_store_url: str) -> None:
    of_a_bucket(azurite_store_url, 12)  # the slowest of them
