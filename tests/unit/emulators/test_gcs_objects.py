"""Objects of the emulated storage: their checksums, which plain Python takes long for."""

from __future__ import annotations

import base64

import pytest

from hostler.emulators.gcs import objects
from hostler.emulators.gcs.objects import LARGE, Object
from hostler.trackers.crc32c import crc32c


def made(data: bytes, generation: int = 1) -> Object:
    return Object("b", "o", data, generation, created=0.0, updated=0.0)


@pytest.mark.parametrize("size", [0, 9, LARGE, LARGE + 1])
def test_checksum_is_that_of_the_bytes(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert base64.b64decode(made(data).crc32c) == crc32c(data).to_bytes(4, "big")


def test_large_content_is_summed_once_however_often_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    summed = []
    monkeypatch.setattr(objects, "_sums", {})
    monkeypatch.setattr(objects, "crc32c", lambda data: summed.append(data[:1]) or len(summed))
    first, again, other = (made(letter * (LARGE + 1), n) for n, letter in enumerate([b"x", b"x", b"y"]))
    assert first.crc32c == again.crc32c != other.crc32c
    assert summed == [b"x", b"y"]
