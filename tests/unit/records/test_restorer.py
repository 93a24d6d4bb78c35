"""Rows of a record into a folder: nothing but files made here is written, whatever the rows say."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import DamagedError
from hostler.records.checkpoint import parts
from hostler.records.checkpoint.restorer import restore, row_of, rows_of
from hostler.store import NotFound
from hostler.store.memory import MemoryStore

DATA = b"payload"


def row(name: str = "file", data: bytes = DATA, **more: Any) -> dict[str, Any]:
    sha256 = hashlib.sha256(data).hexdigest()
    return {
        "name": name,
        "size": len(data),
        "sha256": sha256,
        "n": 0,
        "parts": parts.count(len(data)),
        **more,
    }


def link(name: str, target: str) -> dict[str, Any]:
    return {"name": name, "size": len(target), "link": target, "n": 0, "parts": 1, "sha256": ""}


def key(n: int) -> str:
    return f"k/{n}"


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.put("k/0", DATA)
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine")
    (tmp_path / "home" / "target").mkdir()
    return tmp_path / "home" / "target"


def untouched(target: Path) -> bool:
    file = target.parent / ".bashrc"
    return (file.read_text(), file.stat().st_mode & 0o7000) == ("mine", 0)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([link("a", "../.bashrc"), row("a")], id="link out, then its name"),
        pytest.param([link("a", "b"), row("a")], id="link, then its name"),
        pytest.param([row("a"), row("a")], id="name twice"),
        pytest.param([row("a"), row("./a")], id="name in two spellings"),
        pytest.param([link("a", "."), row("a/b")], id="name below a link"),
        pytest.param([row("a"), row("a/b")], id="name below a file"),
        pytest.param([row("../.bashrc")], id="name that climbs"),
        pytest.param([row("/etc/x")], id="absolute name"),
        pytest.param([link("d/up", ".."), link("out", "d/up/../.bashrc")], id="chain of links"),
        pytest.param([link("x/y/up", "../.."), link("out", "x/y/up/../.bashrc")], id="deep chain"),
        pytest.param([link("a", "/etc/passwd")], id="absolute link"),
    ],
)
def test_rows_that_lead_out_or_collide_are_refused(
    store: MemoryStore, target: Path, rows: list[dict[str, Any]]
) -> None:
    with pytest.raises(DamagedError) as caught:
        restore(store, rows_of(rows), key, target)
    assert "\n" not in str(caught.value) and untouched(target)


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": 0},
        {"parts": 10**12},
        {"parts": -1},
        {"parts": 2},
        {"parts": 1.5},
        {"parts": "1"},
        {"parts": True},
        {"n": -1},
        {"n": None},
        {"n": 1 << 80},
        {"size": -1},
        {"size": "7"},
        {"size": 10**12, "parts": 10**12},
        {"mode": "rwx"},
        {"mtime": 1 << 70},
        {"mtime": "now"},
        {"name": None},
        {"name": ""},
        {"name": "."},
        {"name": "a\0b"},
        {"name": "\ud800"},
        {"name": "x" * 300},
        {"name": "/".join("x" * 2000)},
        {"name": "/".join("x" * 300)},
        {"name": "/".join(["x" * 250] * 20)},
        {"link": 7},
        {"link": "\ud800"},
        {"link": "x/" * 3000},
    ],
)
def test_wrong_row_is_damaged_in_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(DamagedError) as caught:
        rows_of([{**row(), **wrong}])
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("records", [None, 7, "rows", {}, [7], [None], [[]]])
def test_what_is_not_rows_is_damaged(records: Any) -> None:
    with pytest.raises(DamagedError):
        rows_of(records)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["a", "a/b", "../a", "b", ".", "a/../b", "/a", "a//b", "\ud800", ""]) | st.text(
    max_size=4
)
any_row = st.fixed_dictionaries(
    {"name": names},
    optional={
        "link": st.sampled_from(["", "..", "a", "../home", "/etc", "b/.."]) | json_values,
        "size": st.sampled_from([0, 7, 8]) | json_values,
        "sha256": st.just(hashlib.sha256(DATA).hexdigest()) | json_values,
        "n": st.sampled_from([0, 1]) | json_values,
        "parts": st.sampled_from([0, 1, 2]) | json_values,
        "mode": st.just(0o6777) | json_values,
        "mtime": json_values,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(any_row | json_values, max_size=5))
def test_any_rows_are_restored_inside_or_refused(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".bashrc").write_text("mine")
    target, store = home / "target", MemoryStore()
    target.mkdir()
    store.put("k/0", DATA)
    try:
        restore(store, rows_of(rows), key, target)
    except (DamagedError, NotFound):
        pass
    assert sorted(os.listdir(home)) == [".bashrc", "target"] and untouched(target)
    for path in target.rglob("*"):
        assert not path.lstat().st_mode & 0o7000 or path.is_dir()


def test_mode_loses_its_setuid_bit(store: MemoryStore, target: Path) -> None:
    restore(store, rows_of([row(mode=0o6755)]), key, target)
    assert stat.S_IMODE((target / "file").stat().st_mode) == 0o755


def test_files_come_before_links_whatever_their_order(store: MemoryStore, target: Path) -> None:
    rows = [link("latest", "deep/file"), link("deep/same", "../deep"), row("deep/file", mtime=5 * 10**9)]
    assert restore(store, rows_of(rows), key, target) == 0
    assert (target / "latest").read_bytes() == (target / "deep" / "same" / "file").read_bytes() == DATA
    assert (target / "deep" / "file").stat().st_mtime == 5


def test_longer_object_ends_at_its_size(store: MemoryStore, target: Path) -> None:
    store.put("k/0", DATA + b"x" * 10_000)
    asked: list[tuple[int, int | None]] = []
    get = store.get

    def noted(key: str, *, start: int = 0, end: int | None = None) -> Any:
        asked.append((start, end))
        return get(key, start=start, end=end)

    store.get = noted  # type: ignore[method-assign]
    with pytest.raises(DamagedError, match="not what was saved"):
        restore(store, rows_of([row()]), key, target)
    assert asked == [(0, len(DATA) + 1)]
    assert (target / "file").stat().st_size <= len(DATA)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 350])
@pytest.mark.parametrize("whole", [True, False])
def test_file_of_any_size_comes_back(
    size: int, whole: bool, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 100)
    data, store = bytes(n % 251 for n in range(size)), MemoryStore()
    pieces = [data] if whole else [data[at : at + 100] for at in range(0, max(size, 1), 100)]
    for n, piece in enumerate(pieces):
        store.put(key(n), piece)
    rows = rows_of([row(data=data, parts=len(pieces))])
    restore(store, rows, key, target)
    assert (target / "file").read_bytes() == data
    store.delete(key(len(pieces) - 1))
    (target / "file").unlink()
    with pytest.raises(NotFound):
        restore(store, rows, key, target)


def test_resumed_restore_keeps_whole_files_alone(store: MemoryStore, target: Path) -> None:
    rows = rows_of([row("a"), row("b"), row("c")])
    (target / "a").write_bytes(DATA)
    (target / "b").write_bytes(b"PAYLOAD")
    (target / "c").symlink_to("../.bashrc")
    with pytest.raises(OSError):
        restore(store, rows, key, target, resume=True)
    (target / "c").unlink()
    assert restore(store, rows, key, target, resume=True) == 2
    assert [(target / name).read_bytes() for name in "abc"] == [DATA] * 3 and untouched(target)


def test_of_rows_of_one_name_the_last_counts_where_asked() -> None:
    first, second = row("a", n=1), row("a", n=2)
    assert rows_of([first, second], last=True) == [row_of(second)]
