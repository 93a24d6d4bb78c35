"""The JSON inside a stored object, and the object with other JSON in its place."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

SEGMENT, FRAGMENT, SEAL, PACK = b"HSTS", b"HSTM", b"HSTL", b"HSTP"
_HEAD = struct.pack("<HH", 1, 0)


def opened(data: bytes) -> tuple[bytes, Any, bytes]:
    """(magic, JSON, what follows) of a record, segment, fragment, seal, or the first chunk of a pack; None in
    place of what is not JSON."""
    magic = data[:4] if data[:4] in (SEGMENT, FRAGMENT, SEAL, PACK) else b""
    form = struct.Struct("<4sHHI" if magic == SEGMENT else "<4sHI")
    try:
        if not magic:
            return b"", json.loads(data), b""
        if magic == SEAL:
            return magic, json.loads(zlib.decompress(data[8:])), b""
        if magic == PACK:
            return _opened_pack(data)
        begin = form.size
        end = begin + form.unpack_from(data)[-1]
        return magic, json.loads(data[begin:end]), data[end:]
    except (ValueError, struct.error, RecursionError, zlib.error):
        return magic, None, b""


def closed(magic: bytes, record: Any, tail: bytes) -> bytes:
    text = json.dumps(record).encode()
    if magic == SEGMENT:
        text += b" " * (-(len(text) + 12) % 8)
        return magic + _HEAD + struct.pack("<I", len(text)) + text + tail
    if magic == SEAL:
        return magic + _HEAD + zlib.compress(text)
    if magic == PACK:
        return _closed_pack(text, tail)
    return magic + struct.pack("<HI", 1, len(text)) + text + tail if magic else text


def _opened_pack(data: bytes) -> tuple[bytes, Any, bytes]:
    """What follows: sizes of the first chunk and of its objects' bytes, these bytes, all other chunks."""
    stream = zlib.decompressobj()
    plain = stream.decompress(data[8:])
    end = 4 + struct.unpack_from("<I", plain)[0]
    size, body = len(data) - 8 - len(stream.unused_data), plain[end:]
    return PACK, json.loads(plain[4:end]), struct.pack("<II", size, len(body)) + body + stream.unused_data


def _closed_pack(text: bytes, tail: bytes) -> bytes:
    """The chunk has the place it had, if it fits there, so that the others are where the seal says."""
    size, length = struct.unpack_from("<II", tail)
    plain = struct.pack("<I", len(text)) + text + tail[8 : 8 + length]
    return PACK + _HEAD + zlib.compress(plain, 9).ljust(size, b"\0") + tail[8 + length :]
