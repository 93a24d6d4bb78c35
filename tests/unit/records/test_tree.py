"""A folder as rows; names that lead out of it are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler.errors import DamagedError
from hostler.records.checkpoint.tree import hash_file, inside, scan


def test_a_scan_names_files_and_links_not_folders_or_pipes(tmp_path: Path) -> None:
    (tmp_path / "b" / "empty").mkdir(parents=True)
    (tmp_path / "b" / "two").write_text("22")
    (tmp_path / "a").write_text("1")
    (tmp_path / "link").symlink_to("b/two")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    found = scan(tmp_path)
    assert [row.name for row in found.rows] == ["a", "b/two", "link", "loop"]
    assert [row.link for row in found.rows] == ["", "", "b/two", "."]
    first = found.rows[0]
    assert first.record() == {
        "name": "a",
        "size": 1,
        "mode": first.mode & 0o777,
        "mtime": first.mtime_ns,
        "link": "",
    }


def test_replaced_file_of_equal_size_and_time_is_another(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path.with_name(f"{tmp_path.name}-other")
    for path in (file, other):
        path.write_text("x")
        os.utime(path, (5, 5))
    before = scan(tmp_path)
    other.replace(file)
    assert scan(tmp_path) != before
    assert before.newest == 5.0


def test_a_missing_folder_is_an_empty_one(tmp_path: Path) -> None:
    assert scan(tmp_path / "none").rows == ()
    assert (scan(tmp_path / "none").newest, scan(tmp_path).size) == (0, 0)


@pytest.mark.parametrize("name", ["a", "a/b", "a b/ü;\n'x'", "..a", "a..", "...", "a/.b"])
def test_names_that_stay_inside(name: str) -> None:
    assert str(inside(name)) == name


@pytest.mark.parametrize("name", ["/a", "..", "../a", "a/../../b", "a/../b", "a\0b", "a/.."])
def test_names_that_lead_out_or_back_are_refused(name: str) -> None:
    with pytest.raises(DamagedError, match="leads out"):
        inside(name)


def test_link_may_climb_as_far_as_its_own_folder() -> None:
    inside("../x", below=Path("a"))
    inside("../../x", below=Path("a/b"))
    for target, below in [("../../x", "a"), ("/etc/passwd", "a"), ("b/../../../x", "a")]:
        with pytest.raises(DamagedError):
            inside(target, below=Path(below))


def test_the_hash_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert hash_file(tmp_path / "a").startswith("ba7816bf")
