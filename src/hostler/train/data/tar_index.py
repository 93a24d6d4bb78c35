"""What a tar shard holds, in WebDataset's layout: where each picture lies, and its class.

Members that follow each other and have one name up to its first dot are an example: `7.jpg` and `7.cls`, or
`7.json`. Headers are read, and the small members that hold a class; pictures are passed over. A name says
which members belong together, and of what kind they are. It never becomes a path.

Every shard must end as tar does, with a block of zeros: one that was cut between two members is damaged, too.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hostler.errors import DamagedError, SpecError
from hostler.frozen import dataclass
from hostler.train.config import MOST_CLASSES

PICTURES = ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "bmp", "tif", "tiff", "gif")
LABELS = ("label", "cls", "class", "target", "labels")  # of a .json
LARGEST = 1 << 28  # bytes of a picture
_SMALL = 1 << 20  # bytes of a class, or of a header's own records
_BLOCK = 512
_PAX = re.compile(rb"(\d{1,9}) ([^=]+)=")
_WITHOUT_DATA = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE,
                 tarfile.FIFOTYPE)  # fmt: skip

Read = Callable[[int, int], bytes]  # bytes from a place on, fewer only at the end


class Example(NamedTuple):
    """A picture's bytes in its shard, and its class. There are millions of them."""

    start: int
    size: int
    target: int


def examples(read: Read, whole: int, shard: str, target: str | None) -> list[Example]:
    """All of a shard of so many bytes; `target`: the key of a .json's class."""
    return list(_paired(_members(read, whole, shard), read, shard, target))


@dataclass(frozen=True)
class _Member:
    name: str
    start: int
    size: int


def _members(read: Read, whole: int, shard: str) -> Iterator[_Member]:
    at, longer = 0, dict[str, str]()  # what the records before a header say of it
    while any(head := _block(read, at, shard)):
        info = _header(head, at, shard)
        size, start = info.size, at + _BLOCK
        if "size" in longer and info.type not in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            size = int(longer["size"])
        if info.type in _WITHOUT_DATA:
            size = 0
        if size < 0 or start + size > whole:
            raise damaged(shard, f"it breaks off inside {info.name!r}")
        at = start + -(-size // _BLOCK) * _BLOCK
        if info.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            longer = {**longer, **_records(info, _small(read, start, size, shard), shard)}
            continue
        if info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            continue
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise SpecError(f"{shard} has a sparse member {info.name!r}", hint="tar without --sparse")
        if info.isreg():
            yield _Member(longer.get("path", info.name), start, size)
        longer = {}


def _block(read: Read, at: int, shard: str) -> bytes:
    head = read(at, _BLOCK)
    if len(head) < _BLOCK:
        raise damaged(shard, f"it breaks off after {at + len(head):,} bytes")
    return head


def _header(head: bytes, at: int, shard: str) -> tarfile.TarInfo:
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")) and not at:
        raise SpecError(f"{shard} is compressed, and cannot be read in parts", hint="shards are plain tar")
    try:
        return tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError, OverflowError):
        raise damaged(shard, f"no header of tar is at byte {at:,}") from None


def _records(info: tarfile.TarInfo, data: bytes, shard: str) -> dict[str, str]:
    """Path and size of the next member, where they do not fit into its header."""
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.partition(b"\0")[0].decode("utf-8", "surrogateescape")}
    found, at = dict[str, str](), 0
    while at < len(data) and data[at]:
        match = _PAX.match(data, at)
        end = at + int(match[1]) if match else 0
        if match is None or end <= match.end() or end > len(data):
            raise damaged(shard, "records of a header are not those of tar")
        word = match[2].decode("utf-8", "surrogateescape")
        found[word] = data[match.end() : end - 1].decode("utf-8", "surrogateescape")
        at = end
    if not re.fullmatch(r"[0-9]{1,18}", found.get("size", "0")):
        raise damaged(shard, "a header gives a size that no number is")
    return {word: found[word] for word in ("path", "size") if word in found}


def _paired(members: Iterator[_Member], read: Read, shard: str, target: str | None) -> Iterator[Example]:
    held: dict[str, _Member] = {}
    key = ""
    for member in members:
        folder, slash, base = member.name.rpartition("/")
        stem, _, kind = base.partition(".")
        if not stem or not kind:
            continue  # a hidden file, as some systems add them, or one that is no part of an example
        if (name := folder + slash + stem) != key:
            yield from _example(held, key, read, shard, target)
            held, key = {}, name
        if kind.lower() in held:
            raise damaged(shard, f"{key!r} has two members .{kind.lower()}")
        held[kind.lower()] = member
    yield from _example(held, key, read, shard, target)


def _example(
    held: dict[str, _Member], key: str, read: Read, shard: str, target: str | None
) -> Iterator[Example]:
    """None where there is no picture."""
    picture = next((held[kind] for kind in PICTURES if kind in held), None)
    if picture is None:
        return
    if picture.size > LARGEST:
        raise damaged(shard, f"the picture of {key!r} has {picture.size:,} bytes")
    kind = next((one for one in (("json",) if target else ("cls", "json")) if one in held), None)
    if kind is None:
        hint = f"{'' if target else '.cls, or '}.json with {target or 'label'}, beside each picture"
        raise SpecError(f"{shard}: {key!r} has a picture and no class", hint=hint)
    data = _small(read, held[kind].start, held[kind].size, shard)
    number = _number(data) if kind == "cls" else _of_json(data, target)
    if number is None:
        raise SpecError(
            f"{shard}: the class of {key!r} is not a number from 0",
            hint=f"its .{kind} holds one" if kind == "cls" else "data_target: the key of its .json",
        )
    yield Example(picture.start, picture.size, number)


def _number(data: bytes) -> int | None:
    text = data.strip()
    return int(text) if re.fullmatch(rb"[0-9]{1,9}", text) and int(text) < MOST_CLASSES else None


def _of_json(data: bytes, target: str | None) -> int | None:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    name = target or next((one for one in LABELS if one in said), "")
    value = said.get(name)
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_CLASSES
    return value if whole else None


def _small(read: Read, start: int, size: int, shard: str) -> bytes:
    if size > _SMALL:
        raise damaged(shard, f"the member at byte {start:,} has {size:,} bytes, too many for what it is")
    data = read(start, size)
    if len(data) < size:
        raise damaged(shard, f"it breaks off after {start + len(data):,} bytes")
    return data


def damaged(shard: str, why: str) -> DamagedError:
    return DamagedError(f"{shard} is damaged: {why}", hint="copy or write this shard again")


# What was found is kept: a bucket need not be read through again before each training.


FORMAT = 1


def written(found: list[Example]) -> bytes:
    rows = [[one.start, one.size, one.target] for one in found]
    return json.dumps({"format": FORMAT, "examples": rows}, separators=(",", ":")).encode()


def read_back(data: bytes, whole: int) -> list[Example] | None:
    """What was written of a shard of so many bytes; None if these are not such bytes."""
    try:
        said = json.loads(data)
        if said["format"] != FORMAT:
            return None
        found = [Example(*row) for row in said["examples"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if all(_is_whole(one, whole) for one in found) else None


def _is_whole(one: Example, whole: int) -> bool:
    return (
        all(type(number) is int and number >= 0 for number in one)
        and one.start + one.size <= whole
        and one.size <= LARGEST
        and one.target < MOST_CLASSES
    )
