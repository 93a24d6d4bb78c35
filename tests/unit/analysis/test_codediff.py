from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from hostler.analysis.codediff import LARGEST, compare
from hostler.records import layout
from hostler.spec.job import Source
from hostler.store.memory import MemoryStore


def put(
    store: MemoryStore, name: str, files: Mapping[str, bytes], links: Mapping[str, str] | None = None
) -> Source:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for path, target in (links or {}).items():
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    store.put(layout.code(name), buffer.getvalue())
    return Source(snapshot=name)


def test_files_are_added_removed_and_changed() -> None:
    store = MemoryStore()
    one = put(
        store, "1" * 64, {"same.py": b"s\n", "old.py": b"o\n", "a b.py": b"x\ny\n"}, {"link": "same.py"}
    )
    other = put(
        store, "2" * 64, {"same.py": b"s\n", "new.py": b"n\n", "a b.py": b"x\nz\n"}, {"link": "new.py"}
    )
    found = {change.name: change for change in compare(store, one, other)}
    assert {n: c.how for n, c in found.items()} == {
        "old.py": "removed",
        "new.py": "added",
        "a b.py": "changed",
        "link": "changed",
    }
    assert {"-y", "+z"} <= set(found["a b.py"].text)
    assert "+→ new.py" in found["link"].text


def test_what_is_no_text_or_too_large_is_only_named() -> None:
    store = MemoryStore()
    large = b"x" * (LARGEST + 1)
    one = put(store, "1" * 64, {"blob": b"\0a", "large": large})
    other = put(store, "2" * 64, {"blob": b"\0b", "large": large + b"y"})
    assert [(c.name, c.text) for c in compare(store, one, other)] == [("blob", ()), ("large", ())]


def test_name_leading_out_of_the_archive_touches_no_disk() -> None:
    store = MemoryStore()
    one = put(store, "1" * 64, {})
    other = put(store, "2" * 64, {"../../escape": b"x\n"})
    assert [c.name for c in compare(store, one, other)] == ["../../escape"]


def test_code_that_is_no_snapshot_or_gone_is_not_compared() -> None:
    store = MemoryStore()
    one = put(store, "1" * 64, {"a": b"a"})
    assert compare(store, one, one) == []
    assert compare(store, one, Source(git="https://host/x", ref="abc")) == []
    assert compare(store, one, Source(snapshot="3" * 64)) == []
