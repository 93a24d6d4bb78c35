"""Code that another user, or somebody meanwhile, has put into the cache of a real worker: never run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.remote.library_zip import own_zip
from hostler.worker.prepare import manifest
from worker_world import World

NOBODY = 65534
PLANTED = "import os; from pathlib import Path; Path(os.environ['MARKS'], 'planted').touch()"
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can be another user"
)


def plant(folder: Path, name: str, text: str) -> None:
    """As another user."""
    for level in (folder, *folder.parents):
        if level.exists() and level.stat().st_mode & 0o001 == 0:
            level.chmod(level.stat().st_mode | 0o011)
    nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
    script = 'mkdir -p "$1" && printf %s "$3" > "$1/$2"'
    subprocess.run([*nobody, "sh", "-c", script, "sh", str(folder), name, text], check=True)


def work(world: World, cache: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "hostler.worker", str(world.root / "store"), "--runs", "1"]
    variables = {**os.environ, "HOSTLER_CACHE": str(cache), "HOSTLER_DISK_MIN": "1000"}
    return subprocess.run(words, env=variables, capture_output=True, text=True, timeout=100)


@as_root
def test_shared_cache_with_planted_code_is_refused(world: World, tmp_path: Path) -> None:
    job = world.submit("print('trained')")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    plant(shared / "code" / str(job.source.snapshot), "train.py", PLANTED)
    done = work(world, shared)
    assert done.returncode == 1 and f"other users can write to {shared}" in done.stderr + done.stdout
    assert not world.mark("planted").exists()


@as_root
def test_planted_entry_of_a_closed_cache_is_not_run(world: World) -> None:
    job = world.submit("print('trained')")
    world.cache.chmod(0o777)
    plant(world.cache / "code" / str(job.source.snapshot), "train.py", PLANTED)
    world.cache.chmod(0o755)
    world.work(runs=1)
    assert not world.mark("planted").exists()
    assert "belongs to another user" in str(world.ended(job))


def test_code_changed_in_the_cache_is_not_run(world: World) -> None:
    first = world.submit("print('trained')", name="first")
    world.work()
    manifest._known.clear()  # another session
    script = world.cache / "code" / str(first.source.snapshot) / "train.py"
    script.write_text(PLANTED)
    second = world.submit("print('trained')", name="second")
    world.work(runs=1)
    assert not world.mark("planted").exists()
    assert "train.py was changed since" in str(world.ended(second))


@as_root
@pytest.mark.parametrize("open_root", [True, False])
def test_worker_from_a_zip_does_not_run_a_planted_hostler(tmp_path: Path, open_root: bool) -> None:
    packed, cache = tmp_path / "library.zip", tmp_path / "cache"
    packed.write_bytes(own_zip().data)
    cache.mkdir()
    cache.chmod(0o777)
    plant(cache / "library" / own_zip().sha / "hostler", "worker.py", "print('planted')")
    if not open_root:
        cache.chmod(0o755)
    done = run(packed, cache, tmp_path)
    assert done.returncode == 1 and "planted" not in done.stdout
    wrong = "other users can write to" if open_root else "belongs to another user"
    assert done.stderr.startswith("hostler: ") and wrong in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["hostler/worker/main.py", "sitecustomize.py"])
def test_changed_hostler_is_not_run_from_a_zip(tmp_path: Path, name: str) -> None:
    packed, cache = tmp_path / "library.zip", tmp_path / "cache"
    packed.write_bytes(own_zip().data)
    (tmp_path / "store").mkdir()
    assert run(packed, cache, tmp_path / "store").returncode == 0
    (cache / "library" / own_zip().sha / name).write_text("print('planted')")
    done = run(packed, cache, tmp_path / "store")
    assert done.returncode == 1 and "planted" not in done.stdout
    assert f"is not what was put there: {name}" in done.stderr


def run(packed: Path, cache: Path, store: Path) -> subprocess.CompletedProcess[str]:
    alone = {"PATH": os.environ["PATH"], "HOSTLER_CACHE": str(cache), "HOSTLER_DISK_MIN": "1000"}
    words = [sys.executable, str(packed), str(store)]
    return subprocess.run(words, env=alone, capture_output=True, text=True, timeout=100)
