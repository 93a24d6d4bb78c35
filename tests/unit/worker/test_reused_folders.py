from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.attempt.working_files import look
from hostler.records.run.handoff import Handoff
from hostler.worker.prepare.code import copy_tree
from hostler.worker.run import reused_folders
from hostler.worker.run.reused_folders import ReusedFolders


@pytest.fixture
def code(tmp_path: Path) -> Path:
    made = tmp_path / "code"
    (made / "pkg").mkdir(parents=True)
    (made / "train.py").write_text("print(1)\n")
    (made / "pkg" / "part.py").write_text("x = 1\n")
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "latest").symlink_to("train.py")
    for path in (made / "train.py", made / "pkg", made):
        os.utime(path, (1, 2))
    return made


def over(root: Path, code: Path, name: str = "0-a-1") -> Handoff:
    """Folder of a run that has left nothing in it."""
    made = Handoff(root / name)
    made.make({"lr": 0.1})
    made.data.mkdir()
    copy_tree(str(code), str(made.work))
    made.log.touch(mode=0o600)
    made.log.write_text("what it printed\n")
    return made


def test_folder_with_nothing_left_becomes_the_next_runs(tmp_path: Path, code: Path) -> None:
    folders, run = ReusedFolders(), over(tmp_path, code)
    number = os.stat(run.work / "train.py").st_ino
    run.joined.write_text("{}")
    run.metrics.write_bytes(b"points")
    assert folders.keep("job", code, run)
    assert run.log.read_bytes() == b"" and not run.joined.exists() and not run.metrics.exists()
    taken = folders.take("job", tmp_path / "1-a-1")
    assert taken is not None and taken.code == code and not run.folder.exists()
    later = Handoff(tmp_path / "1-a-1")
    assert os.stat(later.work / "train.py").st_ino == number
    assert taken.files == look(later.work)
    later.make({"lr": 0.2}, again=True)
    assert later.params.read_text() == '{"lr": 0.2}'
    assert folders.take("job", tmp_path / "2-a-1") is None


def test_folder_of_another_job_is_not_taken(tmp_path: Path, code: Path) -> None:
    folders = ReusedFolders()
    assert folders.keep("job", code, over(tmp_path, code))
    assert folders.take("another", tmp_path / "1-a-1") is None


def test_folder_that_cannot_be_renamed_is_not_taken(tmp_path: Path, code: Path) -> None:
    folders = ReusedFolders()
    assert folders.keep("job", code, over(tmp_path, code))
    (tmp_path / "1-a-1" / "in the way").mkdir(parents=True)
    assert folders.take("job", tmp_path / "1-a-1") is None


def _rewrite(path: Path) -> None:
    """Other bytes, with size and time as they were."""
    facts = path.stat()
    path.write_text(path.read_text().replace("1", "2"))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _replace(path: Path, change: Callable[[Path], object]) -> None:
    """Remove a file, change something, and put the folder's time back."""
    facts = path.parent.stat()
    path.unlink()
    change(path)
    os.utime(path.parent, ns=(facts.st_atime_ns, facts.st_mtime_ns))


LEFT: dict[str, Callable[[Handoff], object]] = {
    "a checkpoint": lambda run: (run.checkpoint / "model").touch(),
    "an output": lambda run: (run.output / ".hidden").touch(),
    "a file beside its data": lambda run: (run.data / "note").touch(),
    "other bytes of the same size and time": lambda run: _rewrite(run.work / "train.py"),
    "a file that was written again": lambda run: (run.work / "train.py").write_text("print(1)\n"),
    "a new file": lambda run: (run.work / "pkg" / "new").touch(),
    "a new folder": lambda run: (run.work / "__pycache__").mkdir(),
    "a file less": lambda run: (run.work / "train.py").unlink(),
    "a folder less": lambda run: shutil.rmtree(run.work / "pkg"),
    "another mode of a file": lambda run: (run.work / "run.sh").chmod(0o644),
    "another mode of a folder": lambda run: (run.work / "pkg").chmod(0o700),
    "another mode of its own folder": lambda run: run.checkpoint.chmod(0o500),
    "a second name of a file": lambda run: os.link(run.work / "run.sh", run.folder.parent / "elsewhere"),
    "a link in place of a file": lambda run: _replace(
        run.work / "train.py", lambda path: path.symlink_to("run.sh")
    ),
    "a link to elsewhere": lambda run: _replace(run.work / "latest", lambda path: path.symlink_to("run.sh")),
    "a folder in place of a file": lambda run: _replace(run.work / "run.sh", lambda path: path.mkdir()),
    "a file of its own": lambda run: (run.folder / "mine").touch(),
    "a run that lasted": lambda run: run.attempt.write_text("{}"),
    "parameters elsewhere": lambda run: _replace(run.params, lambda path: path.symlink_to("/dev/null")),
    "parameters that nobody may write": lambda run: run.params.chmod(0o400),
    "a log with a second name": lambda run: os.link(run.log, run.folder.parent / "elsewhere"),
    "a log for others": lambda run: run.log.chmod(0o644),
    "a link in place of its folder": lambda run: (
        run.output.rmdir(),
        run.output.symlink_to(run.checkpoint),
    ),
    "no log": lambda run: run.log.unlink(),
    "no working folder": lambda run: shutil.rmtree(run.work),
    "no folder at all": lambda run: shutil.rmtree(run.folder),
}


@pytest.mark.parametrize("what", LEFT)
def test_folder_in_which_anything_is_left_is_not_kept(tmp_path: Path, code: Path, what: str) -> None:
    folders, run = ReusedFolders(), over(tmp_path, code)
    LEFT[what](run)
    assert not folders.keep("job", code, run)
    assert folders.take("job", tmp_path / "1-a-1") is None


def test_large_code_is_copied_for_each_run(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reused_folders, "LARGEST", 10)
    assert not ReusedFolders().keep("job", code, over(tmp_path, code))


def test_code_of_many_files_is_copied_for_each_run(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reused_folders, "FILES", 3)
    assert not ReusedFolders().keep("job", code, over(tmp_path, code))


def test_no_more_folders_are_kept_than_that(
    tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reused_folders, "MOST", 2)
    folders = ReusedFolders()
    kept = [folders.keep("job", code, over(tmp_path, code, f"{n}-a-1")) for n in range(3)]
    assert kept == [True, True, False]
