"""Large files in the store, in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.records.checkpoint import parts
from hostler.store.memory import MemoryStore


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 350])
def test_file_of_any_size_is_sent_in_parts(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 100)
    data = bytes(n % 251 for n in range(size))
    (tmp_path / "file").write_bytes(data)
    keys = [f"k/{n}" for n in range(parts.count(size))]
    store, sent = MemoryStore(), parts.Sent()
    parts.send(store, tmp_path / "file", keys, "sum", sent)
    assert sent == {(key, "sum") for key in keys}
    assert b"".join(store.get(key).data for key in keys) == data
    for n, key in enumerate(keys):
        assert store.get(key).data == data[n * 100 : (n + 1) * 100]


def test_a_part_of_another_file_is_sent_again(tmp_path: Path) -> None:
    store, sent = MemoryStore(), parts.Sent()
    for text in ("one", "two"):
        (tmp_path / "file").write_text(text)
        parts.send(store, tmp_path / "file", ["k"], text, sent)
    assert store.get("k").data == b"two"
