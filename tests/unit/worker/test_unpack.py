from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.errors import PrepareError
from hostler.worker.prepare.unpack import unpack

Member = tuple[str, bytes, str, int]  # name, type, link name, mode


def tar(path: Path, *members: Member, mode: str = "w:gz", content: bytes = b"x") -> Path:
    with tarfile.open(path, mode, errors="surrogateescape") as out:
        for name, kind, target, bits in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, bits
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            out.addfile(info, io.BytesIO(content))
    return path


def file(name: str, bits: int = 0o644) -> Member:
    return (name, tarfile.REGTYPE, "", bits)


def link(name: str, target: str) -> Member:
    return (name, tarfile.SYMTYPE, target, 0o777)


def hard(name: str, target: str) -> Member:
    return (name, tarfile.LNKTYPE, target, 0o644)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_kind_of_tar_is_unpacked(tmp_path: Path, out: Path, mode: str) -> None:
    members = [
        ("d", tarfile.DIRTYPE, "", 0o700),
        file("./d/run.sh", 0o500),
        file("a b\n'"),
        link("d/l", "../a b\n'"),
    ]
    unpack(tar(tmp_path / "t", *members, hard("same", "d/run.sh"), mode=mode), out, what="t")
    assert (out / "d" / "run.sh").read_bytes() == b"x" and os.access(out / "d" / "run.sh", os.X_OK)
    assert os.readlink(out / "d" / "l") == "../a b\n'" and (out / "d" / "l").read_bytes() == b"x"
    assert (out / "same").read_bytes() == b"x"
    assert not (out / "a b\n'").stat().st_mode & 0o111


def test_names_that_are_not_text_are_kept(tmp_path: Path, out: Path) -> None:
    unpack(tar(tmp_path / "t", file(os.fsdecode(b"\xff\xfe"))), out, what="t")
    assert os.listdir(os.fsencode(out)) == [b"\xff\xfe"]


def test_a_file_given_twice_has_its_last_content(tmp_path: Path, out: Path) -> None:
    tar(tmp_path / "t", file("a"), hard("b", "a"), mode="w", content=b"first")
    tar(tmp_path / "t", file("a"), mode="a", content=b"last")
    unpack(tmp_path / "t", out, what="t")
    assert ((out / "a").read_bytes(), (out / "b").read_bytes()) == (b"last", b"first")


@pytest.mark.parametrize(
    "members",
    [
        [file("../evil")],
        [file("a/../../evil")],
        [file("/tmp/evil")],
        [link("l", "../evil")],
        [link("l", "/etc")],
        [link("l", "..")],
        [link("l", "../out/../evil")],
        [link("l", "d"), file("l/evil"), file("d/x")],
        [file("d/x"), link("d/up", ".."), link("l", "d/up/../evil")],
        [link("l", "d/up/.."), file("d/x"), link("d/up", "..")],
        [link("l", "m"), link("m", "../evil")],
        [link("d", "."), link("d/x", "../evil")],
        [hard("h", "../evil")],
        [hard("h", "/etc/passwd")],
        [hard("h", "none")],
        [("dev", tarfile.CHRTYPE, "", 0o644)],
        [("pipe", tarfile.FIFOTYPE, "", 0o644)],
        [file("a"), file("a/b")],
    ],
)
def test_a_tar_that_would_escape_is_refused_by_name(tmp_path: Path, out: Path, members: list[Member]) -> None:
    (tmp_path / "evil").write_text("untouched")
    with pytest.raises(PrepareError) as caught:
        unpack(tar(tmp_path / "t", *members), out, what="data 'x'")
    assert any(repr(name) in caught.value.message for name, *_ in members)
    assert (tmp_path / "evil").read_text() == "untouched"
    assert sorted(os.listdir(tmp_path)) == ["evil", "out", "t"]


def zipped(path: Path, fill: Callable[[zipfile.ZipFile], None]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        fill(out)
    return path


def with_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def test_a_zip_is_unpacked(tmp_path: Path, out: Path) -> None:
    def fill(archive: zipfile.ZipFile) -> None:
        archive.writestr(with_mode("bin/go", 0o100755), "x")
        archive.writestr("plain", "y")
        archive.writestr("empty/", "")
        archive.writestr(with_mode("l", 0o120777), "bin/go")

    unpack(zipped(tmp_path / "z", fill), out, what="z")
    assert os.access(out / "bin" / "go", os.X_OK) and (out / "l").read_text() == "x"
    assert (out / "plain").read_text() == "y" and (out / "empty").is_dir()


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [("../evil", 0o100644, "x"), ("/tmp/evil", 0o100644, "x"), ("l", 0o120777, "../evil")],
)
def test_a_zip_that_would_escape_is_refused_by_name(
    tmp_path: Path, out: Path, name: str, mode: int, content: str
) -> None:
    archive = zipped(tmp_path / "z", lambda z: z.writestr(with_mode(name, mode), content))
    with pytest.raises(PrepareError, match=name):
        unpack(archive, out, what="z")
    assert sorted(os.listdir(tmp_path)) == ["out", "z"]


def test_damaged_archives_and_other_files_are_one_clear_line(tmp_path: Path, out: Path) -> None:
    whole = tar(tmp_path / "t", file("a"), content=os.urandom(100_000)).read_bytes()
    cases = {
        "cut": whole[: len(whole) // 2],
        "flipped": whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:],
        "text": b"hello",
        "empty": b"",
        "gzip": gzip.compress(b"no tar"),
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PrepareError, match="archive"):
            unpack(tmp_path / name, out, what=name)


def test_a_tar_that_ends_in_a_zip_is_a_tar(tmp_path: Path, out: Path) -> None:
    inner = zipped(tmp_path / "z", lambda z: z.writestr("inner", "x")).read_bytes()
    unpack(tar(tmp_path / "t", file("last.zip"), mode="w", content=inner), out, what="t")
    assert os.listdir(out) == ["last.zip"]


def bomb(path: Path, size: int, kind: str) -> Path:
    """Zeros, in an archive of about a thousandth of their size."""
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out, out.open("zeros", "w") as zeros:
            for _ in range(size >> 20):
                zeros.write(bytes(1 << 20))
        return path
    return tar(path, file("zeros"), content=bytes(size))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_small_archive_of_many_bytes_is_refused(tmp_path: Path, out: Path, kind: str) -> None:
    archive = bomb(tmp_path / "bomb", 130 << 20, kind)
    with pytest.raises(PrepareError, match=r"would become more than.*HOSTLER_UNPACKED_RATIO"):
        unpack(archive, out, what="the data")
    assert sum(path.stat().st_size for path in out.iterdir()) <= 100e6


def test_archive_that_claims_fewer_bytes_is_stopped(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTLER_UNPACKED_MAX", "10000")
    with pytest.raises(PrepareError, match=r"more than 10000 bytes.*HOSTLER_UNPACKED_MAX"):
        unpack(bomb(tmp_path / "bomb", 1 << 20, "zip"), out, what="the data")
    monkeypatch.setenv("HOSTLER_UNPACKED_MAX", "1e7")
    unpack(bomb(tmp_path / "bomb", 1 << 20, "zip"), out, what="the data")


def test_archive_of_too_many_members_is_refused(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTLER_UNPACKED_FILES", "3")
    unpack(tar(tmp_path / "t", *[file(str(n)) for n in range(3)]), out, what="t")
    with pytest.raises(PrepareError, match=r"too many files.*HOSTLER_UNPACKED_FILES"):
        unpack(tar(tmp_path / "t", *[link(f"l{n}", "0") for n in range(4)]), out, what="t")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_long_header_of_a_tar_is_refused_unread(tmp_path: Path, out: Path, kind: bytes) -> None:
    header, member = tarfile.TarInfo("header"), tarfile.TarInfo("file")
    header.type, header.size = kind, 1 << 20
    whole = header.tobuf() + b"x" * header.size + member.tobuf() + bytes(1024)
    (tmp_path / "t").write_bytes(gzip.compress(whole))
    with pytest.raises(PrepareError, match=f"a header of {header.size} bytes") as caught:
        unpack(tmp_path / "t", out, what="t")
    assert "\n" not in str(caught.value) and not list(out.iterdir())


def test_bytes_after_the_last_member_are_counted(tmp_path: Path, out: Path) -> None:
    archive = tar(tmp_path / "t", file("a"), mode="w")
    (tmp_path / "t").write_bytes(gzip.compress(archive.read_bytes() + bytes(130 << 20)))
    with pytest.raises(PrepareError, match="would become more than"):
        unpack(tmp_path / "t", out, what="t")
