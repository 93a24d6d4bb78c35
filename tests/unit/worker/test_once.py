from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hostler
from hostler.errors import PrepareError
from hostler.worker.prepare.once import once, once_in_place

HERE = str(Path(hostler.__file__).parents[1])


def quiet(_: str) -> None:
    return None


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(place: Path) -> None:
        made.append(place)
        (place / "x").write_text("x")

    for _ in range(3):
        assert (once(tmp_path / "a" / "b", make, what="b", note=quiet) / "x").read_text() == "x"
    assert len(made) == 1 and sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b", "b.files", "b.lock"]


def test_a_failed_make_leaves_nothing_and_the_next_tries_again(tmp_path: Path) -> None:
    def fail(place: Path) -> None:
        (place / "half").write_text("")
        raise PrepareError("no")

    for maker in (once, once_in_place):
        with pytest.raises(PrepareError):
            maker(tmp_path / "a", fail, what="a", note=quiet)
        assert [p.name for p in tmp_path.iterdir()] == ["a.lock"]
    assert list(once(tmp_path / "a", lambda place: None, what="a", note=quiet).iterdir()) == []


def test_what_cannot_move_is_made_where_it_stays(tmp_path: Path) -> None:
    def make(place: Path) -> None:
        (place / "me").write_text(str(place))

    found = once_in_place(tmp_path / "a", make, what="a", note=quiet)
    assert (found / "me").read_text() == str(found) and found.name.startswith("a.")
    assert once_in_place(tmp_path / "a", make, what="a", note=quiet) == found


def test_one_whose_place_was_removed_is_made_again(tmp_path: Path) -> None:
    first = once_in_place(tmp_path / "a", lambda place: None, what="a", note=quiet)
    first.rmdir()
    assert once_in_place(tmp_path / "a", lambda place: None, what="a", note=quiet).is_dir()


def test_threads_make_it_once(tmp_path: Path) -> None:
    made: list[Path] = []
    barrier = threading.Barrier(8)

    def want() -> None:
        barrier.wait()
        once(tmp_path / "a", made.append, what="a", note=quiet)

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_one_that_waits_says_what_for(tmp_path: Path) -> None:
    said = threading.Event()
    words: list[str] = []

    def note(text: str) -> None:
        words.append(text)
        said.set()

    lock = os.open(tmp_path / "a.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = threading.Thread(
        target=once,
        args=(tmp_path / "a", lambda place: None),
        kwargs={"what": "a", "note": note, "patience": 0.0},
    )
    waiting.start()
    assert said.wait(20)
    os.close(lock)
    waiting.join(20)
    assert words == ["waiting for another process here: a"] and (tmp_path / "a").is_dir()


def test_where_there_are_no_locks_the_first_to_finish_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.worker.prepare.once._try_lock", lambda lock: "unlocked")

    def beaten(place: Path) -> None:
        once(tmp_path / "a", lambda other: (other / "first").touch(), what="a", note=quiet)

    assert os.listdir(once(tmp_path / "a", beaten, what="a", note=quiet)) == ["first"]
    assert sorted(os.listdir(tmp_path)) == ["a", "a.files", "a.lock"]


MAKER = """
import sys, time
from pathlib import Path
from hostler.worker.prepare.once import once
def make(place):
    (place / "half").write_text("")
    print("making", flush=True)
    time.sleep(600)
once(Path(sys.argv[1]), make, what="x", note=print)
"""


def test_after_a_killed_maker_the_next_makes_it(tmp_path: Path) -> None:
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(tmp_path / "a")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": HERE},
    )
    assert maker.stdout is not None and maker.stdout.readline() == b"making\n"
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    made = once(tmp_path / "a", lambda place: (place / "whole").touch(), what="a", note=quiet)
    assert os.listdir(made) == ["whole"] and sorted(os.listdir(tmp_path)) == ["a", "a.files", "a.lock"]


def test_few_files_are_flushed_without_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("all that the disk has was flushed"))

    def make(place: Path) -> None:
        (place / "sub").mkdir()
        (place / "sub" / "x").write_text("x")
        (place / "link").symlink_to("/nowhere")

    made = once(tmp_path / "a", make, what="a", note=quiet)
    wanted = [made / "sub" / "x", made / "sub", made]
    assert [one for one in flushed if one in {path.stat().st_ino for path in wanted}] == [
        path.stat().st_ino for path in wanted
    ]
