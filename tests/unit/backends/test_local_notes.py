"""Notes by which workers of this machine are killed: believed only if nobody else can have written them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler import env, proctable
from hostler.backends.local.backend import LocalBackend
from hostler.spec.project import Fleet

FLEET = Fleet("here", "local")
WORDS = [sys.executable, "-c", "import time; time.sleep(600)", "--option"]
NOBODY = 65534


@pytest.fixture
def common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like /tmp, which this machine's own would lie in; another user can reach it."""
    for level in (tmp_path, *tmp_path.parents):
        if level.stat().st_mode & 0o001 == 0:
            level.chmod(level.stat().st_mode | 0o011)
    folder = tmp_path / "common"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def ours() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that is not a worker."""
    with subprocess.Popen(WORDS) as process:
        yield process
        process.kill()


def note_of(process: subprocess.Popen[bytes], **more: Any) -> dict[str, Any]:
    start = proctable.start_of(process.pid)
    return {"pid": process.pid, "start": start, "log": "", "words": WORDS, **more}


def keep(record: dict[str, Any]) -> Path:
    path = env.machine_dir() / "fleets" / "here" / f"{record['pid']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    return path


def test_process_whose_note_fits_is_ended(common: Path, ours: subprocess.Popen[bytes]) -> None:
    keep(note_of(ours))
    assert [worker.alive for worker in LocalBackend().stop(FLEET, now=True)] == [True]
    assert ours.wait(20) == -9


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"words": [sys.executable, "-m", "hostler.worker", "/store"]}, "names another command than it runs"),
        ({"words": [*WORDS[:-1], "ption"]}, "names another command than it runs"),
        ({"words": None}, "says neither when it started nor what it runs"),
        ({"start": None}, "says neither when it started nor what it runs"),
    ],
)
def test_process_whose_note_does_not_fit_is_left_and_named(
    common: Path, ours: subprocess.Popen[bytes], wrong: dict[str, Any], reason: str
) -> None:
    note = keep({name: value for name, value in note_of(ours, **wrong).items() if value is not None})
    [worker] = LocalBackend().stop(FLEET, now=True)
    assert not worker.alive and reason in worker.detail and f"rm {note}" in worker.detail
    assert ours.poll() is None and note.exists()


@pytest.mark.parametrize("leaves", ["gone", "frees its memory"])
def test_worker_that_leaves_while_its_note_is_read_is_gone(
    common: Path, ours: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    note, known = keep(note_of(ours)), proctable.row(ours.pid)
    assert known is not None

    def shows_none(pid: int, words: Sequence[str]) -> bool:
        if leaves == "gone":
            ours.kill()
            ours.wait()
        else:
            monkeypatch.setattr(proctable, "row", lambda pid: replace(known, exits=True))
        return False

    monkeypatch.setattr(proctable, "runs", shows_none)
    assert LocalBackend().stop(FLEET, now=True) == []
    assert not note.exists()


def test_note_of_another_start_time_kills_nothing(common: Path, ours: subprocess.Popen[bytes]) -> None:
    note = keep(note_of(ours, start="1"))
    assert LocalBackend().stop(FLEET, now=True) == []
    assert ours.poll() is None and not note.exists()


def test_note_cannot_have_a_file_removed(common: Path, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    diary.write_text("a person's")
    note = keep({"pid": 2**22 + 1, "start": "1", "log": "", "words": WORDS, "secrets": f"own:{diary}"})
    assert LocalBackend().list(FLEET) == [] and not note.exists()
    assert diary.exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can be another user")
def test_down_refuses_notes_that_another_user_planted(
    common: Path, tmp_path: Path, ours: subprocess.Popen[bytes]
) -> None:
    diary, project = tmp_path / "diary", tmp_path / "project"
    diary.write_text("a person's")
    project.mkdir()
    (project / "hostler.yaml").write_text("name: p\nstore: store\nfleets: {here: {backend: local}}\n")
    note = json.dumps(note_of(ours, secrets=f"own:{diary}"))
    place = common / f"hostler-{os.getuid()}" / "fleets"
    plant = 'umask 022; mkdir -p "$1/here"; printf %s "$2" > "$1/here/1.json"'
    nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
    subprocess.run([*nobody, "sh", "-c", plant, "sh", str(place), note], check=True)
    words = [sys.executable, "-m", "hostler", "down", "--now", "here"]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert f"{place.parent} belongs to another user (uid {NOBODY})" in done.stderr
    assert done.stderr.count("\n") <= 2 and "Traceback" not in done.stderr
    assert ours.poll() is None and diary.exists()
