"""Wheels that a machine of a fleet is sent: unpacked by its agent, in a folder that is its user's alone."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from hostler.errors import DamagedError, HostError, MachineError
from hostler.worker.agent import HANDLERS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel() -> tuple[dict[str, str], bytes]:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("driver.py", "VALUE = 1\n")
    return {"sha": hashlib.sha256(target.getvalue()).hexdigest()}, target.getvalue()


def test_sent_wheel_is_there_afterwards(cache: Path, wheel: tuple[dict[str, str], bytes]) -> None:
    asked, body = wheel
    assert HANDLERS["has-wheel"](asked, b"").header == {"has": False}
    HANDLERS["wheel"](asked, body)
    assert HANDLERS["has-wheel"](asked, b"").header == {"has": True}
    assert [path.name for path in (cache / "wheels" / asked["sha"]).iterdir()] == ["driver.py"]


def test_damaged_wheel_is_refused(cache: Path, wheel: tuple[dict[str, str], bytes]) -> None:
    asked, body = wheel
    with pytest.raises(DamagedError, match="is damaged"):
        HANDLERS["wheel"](asked, body[:-1])


def test_wheel_is_not_put_where_others_write(cache: Path, wheel: tuple[dict[str, str], bytes]) -> None:
    asked, body = wheel
    (cache / "wheels").mkdir(parents=True)
    (cache / "wheels").chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to"):
        HANDLERS["wheel"](asked, body)


def test_wheel_that_cannot_be_written_names_the_place(
    cache: Path, wheel: tuple[dict[str, str], bytes]
) -> None:
    asked, body = wheel
    cache.mkdir()
    (cache / "wheels").touch()
    with pytest.raises(HostError, match=r"wheels/.*Not a directory"):
        HANDLERS["wheel"](asked, body)
