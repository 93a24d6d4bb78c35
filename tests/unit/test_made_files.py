"""Reports, plots and tables that hostler made are not code; nor is its store."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostler import made_files
from hostler.fleet.snapshot import snapshot
from hostler.records import project as projects
from hostler.settings import Sizes, Timing
from hostler.store import open_store


def code(folder: Path, cache: Path) -> tuple[str, list[str]]:
    taken = snapshot.take(folder, Sizes(), cache=cache)
    return taken.sha, [name for name, _ in taken.files]


def project(root: Path) -> tuple[Path, Path]:
    (root / "p").mkdir()
    (root / "p" / "train.py").write_text("print()")
    return root / "p", root / "cache"


@pytest.mark.parametrize("name", ["ed.html", "plots/results.png", "deep/er/runs.csv"])
def test_a_made_file_does_not_change_the_code(tmp_path: Path, name: str) -> None:
    folder, cache = project(tmp_path)
    before = code(folder, cache)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("made")
    assert code(folder, cache) != before
    made_files.mark(folder / name, cache)
    assert code(folder, cache) == before
    (folder / name).rename(folder / "renamed.html")
    for above in list((folder / name).parents)[: name.count("/")]:
        above.rmdir()
    assert code(folder, cache) == before


def test_a_made_file_that_a_person_edited_is_theirs(tmp_path: Path) -> None:
    folder, cache = project(tmp_path)
    (folder / "ed.html").write_text("made")
    made_files.mark(folder / "ed.html", cache)
    (folder / "ed.html").write_text("MADE")
    assert code(folder, cache)[1] == ["ed.html", "train.py"]


def test_hostlerignore_brings_a_made_file_along(tmp_path: Path) -> None:
    folder, cache = project(tmp_path)
    (folder / "runs.csv").write_text("made")
    made_files.mark(folder / "runs.csv", cache)
    (folder / ".hostlerignore").write_text("!runs.csv\n")
    assert "runs.csv" in code(folder, cache)[1]


def test_old_marks_are_forgotten_and_damage_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / made_files.NAME
    notes.write_bytes(b"\xff\n")
    assert made_files.known(tmp_path) == {}
    monkeypatch.setattr(made_files, "MOST", 100)
    notes.write_text("".join(f"{n} old\n" for n in range(100)))
    (tmp_path / "a.html").write_text("made")
    made_files.mark(tmp_path / "a.html", tmp_path)
    known = made_files.known(tmp_path)
    assert 0 not in known and 99 in known and len(known[4]) == 1
    made_files.mark(tmp_path / "absent", tmp_path)


def made_store(folder: Path) -> Path:
    projects.ensure(open_store(str(folder)), "p", Timing())
    return folder / ".gitignore"


def test_a_new_store_has_a_gitignore_of_its_own(tmp_path: Path) -> None:
    assert made_store(tmp_path / "store").read_text() == "*\n"


@pytest.mark.needs("git")
def test_git_does_not_see_a_store_in_its_checkout(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    made_store(tmp_path / ".hostler").unlink()
    made_store(tmp_path / ".hostler")  # one that an older hostler made
    status = ["git", "-C", str(tmp_path), "status", "--porcelain"]
    assert subprocess.run(status, check=True, capture_output=True, text=True).stdout == ""


def test_an_existing_gitignore_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / ".gitignore").write_text("mine\n")
    assert made_store(tmp_path / "s").read_text() == "mine\n"


def test_a_store_outside_git_that_has_none_is_left_alone(tmp_path: Path) -> None:
    made_store(tmp_path / "s").unlink()
    assert not made_store(tmp_path / "s").exists()
