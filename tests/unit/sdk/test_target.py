"""Files written in pieces, past the page cache or through it: the same bytes."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hostler.sdk.checkpoint import host_memory, part
from hostler.sdk.checkpoint.part import PAGE, TargetFile

SIZE = 5 * PAGE + 123


def filled() -> memoryview:
    memory = host_memory.fresh(SIZE)
    memory[:] = bytes(n * 7 % 251 for n in range(SIZE))
    return memory


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(
    "cuts", [[0, SIZE], [0, PAGE, SIZE], [0, 100, 3 * PAGE, SIZE], [0, 2 * PAGE, 4 * PAGE, SIZE]]
)
def test_pieces_in_any_order_make_the_file(tmp_path: Path, direct: bool, cuts: Sequence[int]) -> None:
    memory = filled()
    with TargetFile(tmp_path / "file", direct=direct) as file:
        for begin, end in sorted(pairwise(cuts), reverse=True):
            assert file.put(begin, memory[begin:end]) == zlib.crc32(memory[begin:end])
        file.sync()
    assert (tmp_path / "file").read_bytes() == bytes(memory)


def test_disk_without_direct_writes_is_written_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = os.pwrite, []

    def pwrite(handle: int, data: Any, at: int) -> int:
        if handle == file._direct:
            refused.append(at)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(handle, data, at)

    memory = filled()
    with TargetFile(tmp_path / "file", direct=True) as file:
        monkeypatch.setattr(os, "pwrite", pwrite)
        file.put(0, memory)
    assert (tmp_path / "file").read_bytes() == bytes(memory)
    assert refused == ([0] if hasattr(os, "O_DIRECT") else [])


def test_a_full_disk_is_an_error_whichever_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with TargetFile(tmp_path / "file", direct=True) as file:
        monkeypatch.setattr(part.os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            file.put(0, filled())
