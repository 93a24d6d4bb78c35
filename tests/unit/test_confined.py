"""Files below a folder: no link below it is followed, with the kernel's one call and without it."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler import confined
from hostler.confined import Root


@pytest.fixture(params=["one call", "step by step", "linked root", "linked root, step by step"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param.endswith("step by step"):
        monkeypatch.setattr(confined, "_openat2", lambda: None)
    (tmp_path / "disk").mkdir()
    if not request.param.startswith("linked"):
        return tmp_path / "disk"
    (tmp_path / "way").symlink_to("disk")
    return tmp_path / "way"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "outside"


def read(root: Root, name: str) -> bytes:
    with open(root.open(name), "rb") as file:
        return file.read()


def test_file_is_opened_through_its_folders(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c").write_text("x")
    assert read(Root(str(root)), "a/b/c") == b"x"
    assert os.listdir(Root(str(root)).folder("a")) == ["b"]
    assert os.listdir(Root(str(root)).folder("")) == ["a"]


@pytest.mark.parametrize("name", ["file", "folder", "folder/secret", "deep/folder/secret", "deep/file"])
def test_link_in_the_way_is_named(root: Path, outside: Path, name: str) -> None:
    for place in (root, root / "deep"):
        place.mkdir(exist_ok=True)
        (place / "file").symlink_to(outside / "secret")
        (place / "folder").symlink_to(outside)
    with pytest.raises(OSError) as caught:
        Root(str(root)).open(name, confined.FOLDER if name == "folder" else confined.READ)
    assert caught.value.errno == errno.ELOOP
    assert caught.value.filename == name.removesuffix("/secret")


@pytest.mark.parametrize(("name", "code"), [("none/x", errno.ENOENT), ("file/x", errno.ENOTDIR)])
def test_missing_names_keep_their_errors(root: Path, name: str, code: int) -> None:
    (root / "file").write_text("")
    with pytest.raises(OSError) as caught:
        Root(str(root)).open(name)
    assert caught.value.errno == code


def test_pipe_and_socket_do_not_hang(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    handle = Root(str(root)).open("pipe")
    assert not confined.is_file(os.fstat(handle))
    os.close(handle)
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(root)  # a socket's whole path may be too long
        listening.bind("socket")
        with pytest.raises(OSError) as caught:
            Root(str(root)).open("socket")
    assert caught.value.errno == errno.ENXIO


def test_root_that_moved_behind_a_link_is_found(root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("x")
    below = Root(str(root))
    assert read(below, "a") == b"x"
    real = Path(os.path.realpath(root))
    shutil.move(real, tmp_path / "larger")
    real.symlink_to(tmp_path / "larger")
    assert read(below, "a") == b"x"


def test_each_new_folder_is_told_and_made_once(root: Path) -> None:
    told: list[int] = []
    with Root(str(root)).descriptor() as handle:
        for _ in range(2):
            os.close(confined.make_below(handle, "a/b/c", told.append))
    assert (root / "a" / "b" / "c").is_dir() and len(told) == 3


MAKERS: list[Callable[[int, str], object]] = [
    confined.create_below,
    confined.make_below,
    lambda handle, name: confined.link_below(handle, name, "x"),
    confined.remove_below,
]


@pytest.mark.parametrize("make", MAKERS)
def test_nothing_is_made_or_removed_through_a_link(
    root: Path, outside: Path, make: Callable[[int, str], object]
) -> None:
    (root / "link").symlink_to(outside)
    with Root(str(root)).descriptor() as handle, pytest.raises(OSError):
        make(handle, "link/secret")
    assert [p.name for p in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_create_refuses_what_is_there_even_a_dangling_link(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside / "new")
    (root / "file").write_text("mine")
    with Root(str(root)).descriptor() as handle:
        for name in ("link", "file"):
            with pytest.raises(FileExistsError):
                confined.create_below(handle, name)
    assert not (outside / "new").exists() and (root / "file").read_text() == "mine"


def test_links_are_judged_by_where_they_end(root: Path, outside: Path) -> None:
    (root / "here").mkdir()
    (root / "out").symlink_to(outside)
    (root / "in").symlink_to("here")
    (root / "chain").symlink_to("out/secret")
    found = {name: confined.leads_inside(str(root), name) for name in ("out", "in", "chain", "here")}
    assert found == {"out": False, "in": True, "chain": False, "here": True}


def test_no_descriptor_is_left_open(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    before = len(os.listdir("/dev/fd"))
    for name in ("link/secret", "none", "none/none"):
        with pytest.raises(OSError):
            Root(str(root)).open(name)
        with Root(str(root)).descriptor() as handle:
            if name.startswith("link"):
                with pytest.raises(OSError):
                    confined.make_below(handle, name)
    assert len(os.listdir("/dev/fd")) == before


def test_link_deeper_than_a_path_does_not_lead_inside(tmp_path: Path) -> None:
    parts = ["x" * 250] * 20  # realpath cannot look at what is there
    (tmp_path / "folder").mkdir()
    root = os.open(tmp_path / "folder", os.O_RDONLY)
    try:
        confined.link_below(root, "/".join([*parts, "link"]), "../" * 21 + "outside")
    finally:
        os.close(root)
    assert not confined.leads_inside(str(tmp_path / "folder"), "/".join([*parts, "link"]))


def test_folder_made_after_the_first_look_is_found(tmp_path: Path) -> None:
    root = confined.Root(str(tmp_path / "store"))
    assert root.attempt("a") == -errno.ENOENT
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a").touch()
    os.close(root.open("a"))
    (tmp_path / "store" / "b").symlink_to("a")
    with pytest.raises(OSError) as refused:
        root.open("b")
    assert refused.value.errno == errno.ELOOP
