"""Examples of a tar shard: names that pair them, and what is damaged."""

from __future__ import annotations

import io
import tarfile

import pytest

from hostler.errors import DamagedError, HostlerError, SpecError
from hostler.train.data import tar_index
from hostler.train.data.tar_index import Example

FORMS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}


def tarred(*members: tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def found(data: bytes, target: str | None = None) -> list[tuple[bytes, int]]:
    read = tar_index.examples(lambda start, count: data[start : start + count], len(data), "s.tar", target)
    return [(data[one.start : one.start + one.size], one.target) for one in read]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_members_of_one_name_are_an_example(form: int) -> None:
    data = tarred(
        ("a.jpg", b"A" * 700), ("a.cls", b"4\n"), ("deep/b.cls", b" 0 "), ("deep/b.png", b""), form=form
    )
    assert found(data) == [(b"A" * 700, 4), (b"", 0)]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_longer_than_a_header_pair_as_well(form: int) -> None:
    long = "ü" * 30 + "x" * 200
    data = tarred(
        (f"{long}1.jpg", b"1"),
        (f"{long}1.cls", b"1"),
        (f"{long}2.jpg", b"2"),
        (f"{long}2.cls", b"2"),
        form=form,
    )
    assert found(data) == [(b"1", 1), (b"2", 2)]


def test_class_may_stand_in_json_under_a_key() -> None:
    data = tarred(("a.jpg", b"A"), ("a.json", b'{"label": 3, "kind": 5}'))
    assert found(data) == [(b"A", 3)] and found(data, "kind") == [(b"A", 5)]
    both = tarred(("a.jpg", b"A"), ("a.json", b'{"label": 3}'), ("a.cls", b"7"))
    assert found(both) == [(b"A", 7)] and found(both, "label") == [(b"A", 3)]


def test_other_members_are_passed_over() -> None:
    data = tarred(
        ("README", b"text"), ("._a.jpg", b"mac"), ("a.seg.png", b"mask"), ("a.jpg", b"A"), ("a.cls", b"1"),
        ("b.cls", b"2"), ("c.txt", b"x"),
    )  # fmt: skip
    assert found(data) == [(b"A", 1)]


def test_links_and_folders_are_no_examples() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, kind in (("x.jpg", tarfile.SYMTYPE), ("x.cls", tarfile.LNKTYPE), ("x", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    assert found(data.getvalue()) == []


WHOLE = tarred(("a.jpg", b"A" * 700), ("a.cls", b"1"), ("b.jpg", b"B"), ("b.cls", b"2"))
ENDS = 8 * 512 + 512  # its members; zeros follow


def test_shard_cut_anywhere_is_damaged() -> None:
    for length in range(0, ENDS, 64):
        with pytest.raises(DamagedError, match=r"^s\.tar is damaged: it breaks off"):
            found(WHOLE[:length])
    assert len(found(WHOLE[: ENDS + 512])) == 2


def test_header_with_another_bit_is_damaged() -> None:
    for at in (0, 512 * 3 + 124, 512 * 7 + 10):
        data = bytearray(WHOLE)
        data[at] ^= 1
        with pytest.raises(DamagedError, match="no header of tar is at byte"):
            found(bytes(data))


BAD: dict[str, tuple[bytes, type[HostlerError], str]] = {
    "no class": (tarred(("a.jpg", b"A"), ("b.cls", b"1")), SpecError, "'a' has a picture and no class"),
    "a word": (tarred(("a.jpg", b"A"), ("a.cls", b"cat")), SpecError, "class of 'a' is not a number from 0"),
    "below 0": (tarred(("a.jpg", b"A"), ("a.cls", b"-1")), SpecError, "is not a number from 0"),
    "too large": (tarred(("a.jpg", b"A"), ("a.cls", b"9" * 400)), SpecError, "is not a number from 0"),
    "a list": (tarred(("a.jpg", b"A"), ("a.json", b"[1]")), SpecError, "is not a number from 0"),
    "true": (tarred(("a.jpg", b"A"), ("a.json", b'{"cls": true}')), SpecError, "is not a number from 0"),
    "deep": (tarred(("a.jpg", b"A"), ("a.json", b"[" * 9999)), SpecError, "is not a number from 0"),
    "twice": (tarred(("a.jpg", b"A"), ("a.jpg", b"B")), DamagedError, "'a' has two members .jpg"),
    "endless class": (tarred(("a.jpg", b"A"), ("a.cls", bytes(2 << 20))), DamagedError, "too many for what"),
    "an escape": (tarred(("\x1b[31m\n.jpg", b"A")), SpecError, r"'\x1b[31m\n' has a picture"),
    "gzip": (b"\x1f\x8b" + bytes(1000), SpecError, "s.tar is compressed"),
    "text": (b"text" * 300, DamagedError, "no header of tar is at byte 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_shard_is_a_line(name: str) -> None:
    data, kind, said = BAD[name]
    with pytest.raises(kind) as caught:
        found(data)
    assert (
        said in str(caught.value) and "\n" not in str(caught.value) and str(caught.value).startswith("s.tar")
    )
    assert caught.value.hint


BENT = (
    b"", b"[]", b"{}", b'{"format":1,"examples":[[1,2]]}', b'{"format":1,"examples":[[1,-2,0]]}',
    b'{"format":1,"examples":[[1,2,"0"]]}', b'{"format":2,"examples":[]}', b'{"format":1,"examples":7}',
    b'{"format":1,"examples":[[1,2,0]',
)  # fmt: skip


def test_index_is_read_back_or_refused() -> None:
    kept = [Example(512, 700, 1), Example(2560, 1, 2)]
    data = tar_index.written(kept)
    assert tar_index.read_back(data, 10_240) == kept
    assert tar_index.read_back(data, 2560) is None, "of a larger shard"
    for bad in BENT:
        assert tar_index.read_back(bad, 10_240) is None
