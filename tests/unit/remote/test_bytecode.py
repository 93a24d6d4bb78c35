"""Bytecode in the store: left by a worker, unpacked with the library, loaded without a compile."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from hostler.backends.fetch import fetch_bytecode
from hostler.errors import MachineError
from hostler.records import layout
from hostler.remote import bytecode
from hostler.remote import install as installer
from hostler.remote.install import install
from hostler.store import open_store
from hostler.worker import left_bytecode

SOURCES = {"parcelled/__init__.py": "", "parcelled/one.py": "value = 1\n"}
MODULES = ("parcelled", "parcelled.one")
CODE = f"parcelled/__pycache__/one.{bytecode.tag()}.pyc"


def zipped(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return target.getvalue()


LIBRARY = zipped(SOURCES)
SHA = hashlib.sha256(LIBRARY).hexdigest()


@pytest.fixture(autouse=True)
def unloaded() -> Iterator[None]:
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """As a worker packs it that runs from a library."""
    (tmp_path / "first").mkdir()
    place = install(tmp_path / "first", SHA, lambda: LIBRARY)
    monkeypatch.syspath_prepend(place)
    return bytecode.code_of_modules([*MODULES, "json"], Path(place))


def _value(loader: SourceFileLoader) -> object:
    """What the module says, by the code that an import would take."""
    code, found = loader.get_code("parcelled.one"), dict[str, object]()
    assert code
    exec(code, found)
    return found["value"]


def test_unpacked_library_with_bytecode_is_never_compiled(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(install(tmp_path, SHA, lambda: LIBRARY, lambda: packed))
    loader = SourceFileLoader("parcelled.one", str(place / "parcelled/one.py"))
    monkeypatch.setattr(SourceFileLoader, "source_to_code", lambda *given: pytest.fail("compiled"))
    assert _value(loader) == 1 and bytecode.came_along(loader.path)


def test_packed_bytecode_is_of_the_library_alone(packed: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        assert sorted(opened.namelist()) == [f"parcelled/__pycache__/__init__.{bytecode.tag()}.pyc", CODE]


@pytest.mark.parametrize("damage", ["cut", "foreign", "stale", "empty"])
def test_bytecode_that_cannot_be_used_leaves_the_sources(tmp_path: Path, packed: bytes, damage: str) -> None:
    given = {
        "cut": packed[: len(packed) // 2],
        "foreign": zipped({"../away.pyc": "x", "parcelled/one.py": "value = 3\n", "more.py": "x"}),
        "stale": zipped({CODE: "another Python's"}),
        "empty": b"",
    }[damage]
    (tmp_path / "second").mkdir()
    place = Path(install(tmp_path / "second", SHA, lambda: LIBRARY, lambda: given))
    files = {path.relative_to(place).as_posix() for path in place.rglob("*.py")}
    assert files == set(SOURCES) and not list(tmp_path.glob("**/away.pyc"))
    assert _value(SourceFileLoader("parcelled.one", str(place / "parcelled/one.py"))) == 1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_module_whose_bytecode_arrives_damaged_is_compiled(tmp_path: Path, share: float) -> None:
    """Python would believe what has come of it."""
    sources = {"large/__init__.py": f"value = {list(range(40_000))}\n"}
    library = zipped(sources)
    code = f"large/__pycache__/__init__.{bytecode.tag()}.pyc"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        made.writestr(code, bytes(range(256)) * 4096)
    given = bytearray(target.getvalue())
    given[int(len(given) * share)] ^= 1
    place = Path(
        install(tmp_path, hashlib.sha256(library).hexdigest(), lambda: library, lambda: bytes(given))
    )
    assert not (place / code).exists()


def test_bytecode_larger_than_any_module_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "LARGEST_CODE", 100)
    small, large = ({CODE: "x" * size} for size in (100, 101))
    for number, (given, there) in enumerate([(small, True), (large, False)]):
        (tmp_path / str(number)).mkdir()
        place = install(tmp_path / str(number), SHA, lambda: LIBRARY, lambda given=given: zipped(given))  # type: ignore[misc]
        assert (Path(place) / CODE).exists() == there


def test_bytecode_under_a_password_leaves_the_sources(tmp_path: Path) -> None:
    given = bytearray(zipped({CODE: "x"}))
    for header in (b"PK\x03\x04", b"PK\x01\x02"):
        given[given.index(header) + (6 if header[2] == 3 else 8)] |= 1  # the flag of an encrypted entry
    place = Path(install(tmp_path, SHA, lambda: LIBRARY, lambda: bytes(given)))
    assert not (place / CODE).exists() and (place / "parcelled/one.py").exists()


def test_bytecode_is_asked_for_by_library_and_python() -> None:
    asked = list[str]()

    def download(key: str) -> bytes:
        asked.append(key)
        return b"code"

    assert fetch_bytecode(download, layout.library(SHA)) == b"code"
    assert asked == [layout.bytecode(SHA, bytecode.tag())]
    assert fetch_bytecode(download, layout.wheel(SHA)) == b"" and len(asked) == 1


def test_store_without_bytecode_fails_no_start() -> None:
    def download(key: str) -> bytes:
        raise MachineError(f"{key} cannot be read")

    assert fetch_bytecode(download, layout.library(SHA)) == b""


def test_first_worker_leaves_its_bytecode_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    library = Path(install(tmp_path / "cache", SHA, lambda: LIBRARY))
    (library / "hostler").symlink_to(library / "parcelled")
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.setattr(left_bytecode, "BEFORE", MODULES)
    store = open_store(f"memory:{tmp_path.name}")
    left_bytecode.leave(store, library)
    key = layout.bytecode(SHA, bytecode.tag())
    first = store.get(key).data
    assert CODE in zipfile.ZipFile(io.BytesIO(first)).namelist()
    monkeypatch.setattr(bytecode, "code_of_modules", lambda *given: pytest.fail("packed again"))
    left_bytecode.leave(store, library)
    assert store.get(key).data == first


def test_worker_that_came_with_bytecode_asks_nothing(tmp_path: Path, packed: bytes) -> None:
    sources = {name.replace("parcelled", "hostler"): text for name, text in SOURCES.items()}
    data = zipped(sources)
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        code = {name.replace("parcelled", "hostler"): opened.read(name) for name in opened.namelist()}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for name, content in code.items():
            made.writestr(name, content)
    library = Path(install(tmp_path, hashlib.sha256(data).hexdigest(), lambda: data, target.getvalue))
    left_bytecode.leave(None, library)  # type: ignore[arg-type]


def test_hostler_that_is_installed_leaves_no_bytecode(tmp_path: Path) -> None:
    left_bytecode.leave(None, tmp_path / "site-packages")  # type: ignore[arg-type]
