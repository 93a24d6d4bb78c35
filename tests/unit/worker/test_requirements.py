from __future__ import annotations

from pathlib import Path

import pytest

from hostler.errors import PrepareError
from hostler.worker.prepare import requirements


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder / "main.txt"


@pytest.mark.parametrize(
    "line",
    [
        "-r other.txt",
        "-rother.txt",
        "--requirement other.txt",
        "--requirement=other.txt",
        "-c other.txt  # why",
    ],
)
def test_a_change_of_an_included_file_is_another_wish(tmp_path: Path, line: str) -> None:
    main = written(tmp_path, main=f"numpy\n{line}\n", other="scipy==1\n")
    before = requirements.read(main).key()
    written(tmp_path, other="scipy==2\n")
    assert requirements.read(main).key() != before


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    main = written(tmp_path, main="-r other.txt\n", other="-r main.txt\nnumpy\n")
    assert requirements.read(main).text.count(b"numpy") == 1


@pytest.mark.parametrize(
    "line",
    [
        ".",
        "-e .",
        "--editable=./x",
        "./x",
        ".[dev]",
        "dist/x.whl",
        "x.whl",
        "x @ file:./x",
        "--find-links wheels",
        "libs/x",
    ],
)
def test_what_lies_in_the_project_is_local(tmp_path: Path, line: str) -> None:
    assert requirements.read(written(tmp_path, main=f"numpy\n{line}\n")).local


@pytest.mark.parametrize(
    "line",
    [
        "numpy>=1.0",
        "x @ https://host/x.whl",
        "git+https://host/x.git",
        "--index-url https://host/simple",
        "# ./x",
        "https://host/x.zip",
        "torch --hash=sha256:a/b",
    ],
)
def test_what_comes_from_elsewhere_is_not_local(tmp_path: Path, line: str) -> None:
    assert not requirements.read(written(tmp_path, main=f"{line}\n")).local


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=r"other\.txt"):
        requirements.read(written(tmp_path, main="-r other.txt\n"))
