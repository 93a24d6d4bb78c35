"""What the recorder finds of what was left: a living process, a file, a mount. A look that sees nothing
would let every dose pass."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import checker
import pytest
from checker import LEFT
from recorder import Recorder, marked, mounts_below, own_files

import servers

SLEEPS = "import sys, time; print('up', flush=True); time.sleep(600)"


@contextmanager
def living(cache: Path, program: str = SLEEPS) -> Iterator[subprocess.Popen[str]]:
    """A process that carries this cache folder, as those of a farm do."""
    environ = {**os.environ, "HOSTLER_CACHE": str(cache)}
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def test_living_process_of_this_cache_is_seen(tmp_path: Path) -> None:
    cache, other = tmp_path / "cache", tmp_path / "cache2"
    with living(cache) as process, living(other):
        assert [line.partition(" ")[0] for line in marked(str(cache))] == [str(process.pid)]
        assert "time.sleep(600)" in marked(str(cache))[0]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and nobody has asked how
        assert marked(str(cache)) == []


def test_child_that_outlived_its_parent_is_seen(tmp_path: Path) -> None:
    """As a run whose worker was killed: nobody waits for it any more."""
    cache = tmp_path / "cache"
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEPS!r}], stdout=subprocess.PIPE, text=True)\n"
        "child.stdout.readline(); print('up', flush=True); sys.stdin.read()"
    )
    with living(cache, program) as parent:
        [child] = [int(line.split()[0]) for line in marked(str(cache)) if "import subprocess" not in line]
        parent.kill()
        parent.wait()
        try:
            assert [line.split()[0] for line in marked(str(cache))] == [str(child)]
        finally:
            os.kill(child, 9)


@pytest.mark.parametrize(
    "name",
    ["cache/runs/0000001-ab/handoff/points", "cache/alone/x/state", "tmp/hostler-1/socket", "tmp/file"],
)
def test_file_that_a_run_left_is_seen(tmp_path: Path, name: str) -> None:
    cache, tmp = tmp_path / "cache", tmp_path / "tmp"
    for folder in (cache / "runs", cache / "alone", cache / "code", tmp / "empty", tmp / "pymp-1"):
        folder.mkdir(parents=True)
    (cache / "code" / "train.py").touch()  # code, Python and data stay for the next run
    (tmp / "pymp-1" / "listener").touch()
    assert own_files(cache, tmp) == []
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    [left] = own_files(cache, tmp)
    assert path.is_relative_to(left)


def test_folder_of_a_run_is_seen_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache" / "runs" / "0000001-ab").mkdir(parents=True)
    assert own_files(tmp_path / "cache", tmp_path / "tmp") == [f"{tmp_path}/cache/runs/0000001-ab"]


def test_mount_below_a_folder_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "a disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True).returncode:
        servers.missing("mounting a file system needs root on Linux")
    try:
        assert mounts_below(tmp_path) == [str(place)]
        assert mounts_below(tmp_path / "a") == []
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert mounts_below(tmp_path) == []


def test_what_was_seen_is_in_the_history_and_judged(tmp_path: Path) -> None:
    cache, tmp = tmp_path / "farm" / "cache", tmp_path / "farm" / "tmp"
    for folder in (cache / "runs" / "0000001-ab", tmp):
        folder.mkdir(parents=True)
    recorder = Recorder(str(tmp_path / "store"), tmp_path / "evidence", "sweep", os.environ)
    with living(cache):
        recorder.note_left(cache, tmp, machines=["vm-1"])
    left = [one for one in checker.check(recorder.folder) if one.rule == LEFT]
    assert sorted(one.thing for one in left) == ["files", "machines", "processes"]
