"""CRC-32C, in plain Python: the checksum that Google's storage clients and TensorBoard verify."""

from __future__ import annotations

from functools import cache

_REFLECTED_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    return tuple(_entry(number) for number in range(256))


def _entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (_REFLECTED_POLYNOMIAL if number & 1 else 0)
    return number
