"""COMMITs of checkpoints that the library wrote: one that nobody wrote so is damaged, in one line."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import Mark, SavedCheckpoint, seal, unseal
from hostler.sdk.checkpoint import safetensors

DEEP = b"[" * 200_000


@pytest.mark.parametrize("data", [DEEP, b"[]", b"7", seal({"format": "1"}), seal({"format": None})])
def test_commit_that_nobody_wrote_so_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError, match="it is"):
        unseal(data, "it")


@pytest.mark.parametrize("files", [None, 7, [7], [{}], [{"name": "a", "pieces": [[1]]}]])
def test_rows_of_a_commit_that_are_not_files_are_damaged(files: Any) -> None:
    saved = SavedCheckpoint(Path(), Mark(1), {"files": files})
    with pytest.raises(DamagedError, match=f"{Mark(1).name}/{saved_folder.COMMIT}"):
        print(saved.files)


def test_deep_header_of_tensors_is_damaged() -> None:
    with pytest.raises(DamagedError, match="header"):
        safetensors.parse(memoryview(len(DEEP).to_bytes(8, "little") + DEEP))


@pytest.mark.parametrize("lengths", [[], [5], [3, 3, 3]])
def test_file_is_checked_piece_by_piece(tmp_path: Path, lengths: list[int]) -> None:
    data, pieces = b"", []
    for number, length in enumerate(lengths):
        piece = bytes([number]) * length
        data, pieces = data + piece, [*pieces, (length, zlib.crc32(piece))]
    row, path = saved_folder.FileSum("f", pieces), tmp_path / "f"
    path.write_bytes(data)
    saved_folder.check_file(path, row)
    path.write_bytes(data + b"x")
    with pytest.raises(DamagedError, match="bytes of"):
        saved_folder.check_file(path, row)
    path.write_bytes(data[:-1] + b"x" if data else b"y")
    with pytest.raises(DamagedError, match=r"is not what|bytes of"):
        saved_folder.check_file(path, row)


def test_large_file_is_checked_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_folder, "PIECE", 2)
    pieces = [(2, zlib.crc32(b"ab")), (2, zlib.crc32(b"cd"))]
    saved_folder.check(memoryview(b"abcd"), saved_folder.FileSum("f", pieces))
    with pytest.raises(DamagedError, match="is not what"):
        saved_folder.check(memoryview(b"abcx"), saved_folder.FileSum("f", pieces))


def test_small_file_is_checked_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", None)
    pieces = [(1, zlib.crc32(b"a")), (1, zlib.crc32(b"b"))]
    saved_folder.check(memoryview(b"ab"), saved_folder.FileSum("f", pieces))
