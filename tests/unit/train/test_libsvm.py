"""Files of libsvm: what is wrong with one is said with its line, and no index takes all memory."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from hostler.errors import DamagedError, HostlerError, SpecError
from hostler.train.config import Config
from hostler.train.data import libsvm


def config(folder: Path) -> Config:
    return Config(data_dir=str(folder), data_download=False, data_splits_map={"train": "train"})


def test_rows_are_as_wide_as_the_largest_index(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("+1 1:0.5 3:2  # a comment\n\n-1 2:1\n")
    data = libsvm.load(config(tmp_path), "x")
    assert (data.input_shape, data.n_classes, data.classes) == ((3,), 2, ("-1", "1"))
    assert data.splits["train"][0][0].tolist() == [0.5, 0.0, 2.0]


@pytest.mark.parametrize("index", [10**12, 10**30])
def test_index_that_would_fill_all_memory_is_refused_by_line(tmp_path: Path, index: int) -> None:
    (tmp_path / "x").write_text(f"1 1:1\n0 2:1\n1 {index}:1\n")
    with pytest.raises(SpecError) as caught:
        libsvm.load(config(tmp_path), "x")
    assert f"{tmp_path / 'x'}:3 has the index {index}: 3 examples so wide" in str(caught.value)


@pytest.mark.parametrize("line", ["1 0:1", "1 a:1", "1 1", "1 1:x", "x 1:1", "1 1:nan", "inf 1:1", "1 -3:1"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(f"1 1:1\n{line}\n")
    with pytest.raises(DamagedError, match=r"x:2 is not a line"):
        libsvm.load(config(tmp_path), "x")


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "y.bz2").write_bytes(bz2.compress(b"1 1:1\n" * 1000)[:30])
    (tmp_path / "z.bz2").write_bytes(b"no archive")
    for name in "xyz":
        with pytest.raises(HostlerError, match=r"not text|cannot be read"):
            libsvm.load(config(tmp_path), name)
