"""Zips of hostler, unpacked once where nobody else can write."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from hostler.errors import DamagedError, MachineError
from hostler.remote.install import install, install_in_cache


def zipped(text: str = "1") -> tuple[bytes, str]:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("a/b.py", text)
    return target.getvalue(), hashlib.sha256(target.getvalue()).hexdigest()


def never() -> bytes:
    raise AssertionError("asked for")


def test_zip_is_fetched_once_and_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, sha = zipped()
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    place = Path(install_in_cache("library", sha, lambda: data))
    assert place == tmp_path / "cache" / "library" / sha and (place / "a" / "b.py").read_text() == "1"
    assert [one.stat().st_mode & 0o777 for one in (place, *place.parents[:2])] == [0o700] * 3
    assert install_in_cache("library", sha, never) == str(place)


def test_damaged_zip_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    data, sha = zipped()
    with pytest.raises(DamagedError, match="is damaged"):
        install(tmp_path, sha, lambda: data[:-1])
    assert list(tmp_path.iterdir()) == []


def test_process_that_was_faster_has_won(tmp_path: Path) -> None:
    data, sha = zipped()

    def fetch() -> bytes:
        (Path(install(tmp_path, sha, lambda: data)) / "mark").touch()
        return data

    place = Path(install(tmp_path, sha, fetch))
    assert (place / "mark").exists() and list(tmp_path.iterdir()) == [place]


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    data, sha = zipped()
    with pytest.raises(FileNotFoundError) as refused:
        install(tmp_path / "none", sha, lambda: data)
    assert str(tmp_path / "none" / sha) in str(refused.value.filename)


@pytest.mark.parametrize("level", ["", "wheels", "wheels/ab"])
def test_open_level_is_refused_unread(tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "wheels" / "ab").mkdir(parents=True)
    assert install_in_cache("wheels", "ab", never)
    (tmp_path / "cache" / level).chmod(0o777)
    with pytest.raises(MachineError, match=f"other users can write to {tmp_path / 'cache' / level}"):
        install_in_cache("wheels", "ab", never)
