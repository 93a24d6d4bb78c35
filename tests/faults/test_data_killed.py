"""Data on its way, and processes that are killed in the middle of it."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.records import layout
from hostler.records.checkpoint import bulk
from hostler.store.folder import FolderStore

MB = 1 << 20
SEND = """
import os, signal, sys, threading
from pathlib import Path
from hostler.records.checkpoint import bulk
from hostler.store.folder import FolderStore

class Told(FolderStore):
    left, lock = int(sys.argv[4]), threading.Lock()

    def put(self, key, data, *, if_absent=False):
        done = super().put(key, data, if_absent=if_absent)
        with self.lock:
            os.write(1, f"{key} {len(data)}\\n".encode())
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return done

bulk.send(Told(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
"""
UNPACK = """
import os, signal, sys
from pathlib import Path
from hostler.records import layout
from hostler.spec.job import DataItem
from hostler.store.folder import FolderStore
from hostler.worker.prepare import code
from hostler.worker.prepare.data_dir import data_dir

store, cache, sha, scratch, kill = sys.argv[1:]
real = code.unpack

def unpack(archive, folder, *, what):
    os.write(1, b"unpacks\\n")
    (folder / "half").write_text("x")
    if kill == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / "half").unlink()
    real(archive, folder, what=what)

code.unpack = unpack
item = DataItem("train", blob=sha)
data_dir([item], FolderStore(store), Path(cache), Path(scratch), lambda line: None, Path(scratch), {})
"""


def typed(code: str, *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ))


@pytest.mark.parametrize("size", [80 * MB + 1, pytest.param(200 * MB, marks=pytest.mark.soak)])
def test_killed_upload_sends_nothing_again_that_has_arrived(tmp_path: Path, size: int) -> None:
    path, store = tmp_path / "file", tmp_path / "store"
    path.write_bytes(random.Random(1).randbytes(size))
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    FolderStore(store).put("probe/x", b"")
    first = typed(SEND, store, path, sha, 3)
    killed = (first.communicate()[0]).decode().splitlines()
    assert first.returncode == -9 and len(killed) >= 3 and not bulk.keep(FolderStore(store), sha, 0.0)
    second = typed(SEND, store, path, sha, 0)
    rest = (second.communicate()[0]).decode().splitlines()
    assert second.returncode == 0 and bulk.keep(FolderStore(store), sha, 0.0)
    assert not {line.split()[0] for line in killed} & {line.split()[0] for line in rest}
    assert sum(int(line.split()[1]) for line in rest if ".parts/" in line) <= size - 3 * bulk.PART
    bulk.fetch(FolderStore(store), sha, tmp_path / "back")
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == sha


def test_killed_unpacking_is_redone_once_by_two_workers(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for n in range(50):
        (source / f"{n}.txt").write_text("x" * n)
    subprocess.run(["tar", "-C", str(source), "-cf", str(tmp_path / "a.tar"), "."], check=True)
    sha = hashlib.sha256((tmp_path / "a.tar").read_bytes()).hexdigest()
    store, cache = tmp_path / "store", tmp_path / "cache"
    bulk.send(FolderStore(store), tmp_path / "a.tar", sha)
    assert layout.data(sha) in {entry.key for entry in FolderStore(store).list("data/")}
    killed = typed(UNPACK, store, cache, sha, tmp_path / "one", "kill")
    assert killed.communicate()[0] == b"unpacks\n" and killed.returncode == -9
    assert not (cache / "data" / sha).exists()
    both = [typed(UNPACK, store, cache, sha, tmp_path / name, "") for name in ("two", "three")]
    said = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0] and sorted(said) == [b"", b"unpacks\n"]
    for name in ("two", "three"):
        found = sorted(path.name for path in (tmp_path / name / "data" / "train").iterdir())
        assert found == sorted(f"{n}.txt" for n in range(50))
