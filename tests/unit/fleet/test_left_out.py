"""A run that missed a file: which rule of the project left it out, and the ways to bring it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler import made_files
from hostler.fleet.snapshot import left_out, snapshot
from hostler.settings import Sizes

MISSED = "FileNotFoundError: [Errno 2] No such file or directory: {!r}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "p"
    files = [
        "train.py",
        "data/shakespeare/train.bin",
        "raw/deep/x.npy",
        "src/m.bin",
        ".venv/lib/a.py",
        "a.csv",
    ]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("# large\n*.bin\nraw/\n*.npy\n")
    return folder


def said(project: Path, name: str, cwd: str = "", form: str = MISSED) -> list[str]:
    return left_out.advice(project, lambda: cwd, {"message": form.format(name)})


def test_the_rule_and_both_ways_out_are_named(project: Path) -> None:
    assert said(project, "data/shakespeare/train.bin") == [
        "data/shakespeare/train.bin is in the project, but was left out of the code by "
        "*.bin in .gitignore (line 2)",
        "as data, in hostler.yaml:  data: {shakespeare: {path: data/shakespeare, at: data/shakespeare}}",
        "as code, in .hostlerignore:  !/data/shakespeare/train.bin",
    ]


@pytest.mark.parametrize("name", ["data/shakespeare/train.bin", "raw/deep/x.npy", "raw/deep", "src/m.bin"])
def test_the_lines_for_hostlerignore_bring_it_along(project: Path, tmp_path: Path, name: str) -> None:
    found = left_out.left_out(project, name)
    assert found is not None
    (project / ".hostlerignore").write_text("\n".join(found.takes_back))
    taken = snapshot.take(project, Sizes(), cache=tmp_path / "cache")
    assert any(file == name or file.startswith(f"{name}/") for file, _ in taken.files) or name == "raw/deep"
    assert left_out.left_out(project, name) is None


@pytest.mark.parametrize(
    ("name", "cwd", "form"),
    [
        ("m.bin", "src", MISSED),
        ("../src/m.bin", "src", MISSED),
        ("/cache/runs/s/0-r-1/root/work/src/m.bin", "", MISSED),
        ("src/m.bin", "", "exit code 1: cat: {}: No such file or directory"),
        ("src/m.bin", "", "OSError: Unable to open file (unable to open file: name = '{}', errno = 2)"),
    ],
)
def test_a_missed_file_is_found_in_any_form(project: Path, name: str, cwd: str, form: str) -> None:
    assert "src/m.bin is in the project" in said(project, name, cwd, form)[0]


@pytest.mark.parametrize("name", ["train.py", "gone.bin", "../p/src/m.bin", "/etc/passwd", ""])
def test_a_file_that_was_not_left_out_gets_no_advice(project: Path, name: str) -> None:
    assert said(project, name) == []
    assert left_out.advice(project, str, {"message": "ValueError: src/m.bin is bad"}) == []


def test_what_hostler_always_leaves_out_is_said_so(project: Path) -> None:
    assert "by a rule of hostler's own (.venv/)" in said(project, ".venv/lib/a.py")[0]


def test_a_table_that_hostler_made_is_said_so(project: Path) -> None:
    made_files.mark(project / "a.csv")
    lines = said(project, "a.csv")
    assert "left out of the code by hostler, which made it" in lines[0] and lines[2].endswith("!/a.csv")
