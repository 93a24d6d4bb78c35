from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler.errors import StoreError
from hostler.remote.frames import Frame
from hostler.store.server import ARRIVING, STALE, Server

TOKEN = "ab12"


def ask(server: Server, op: str, body: bytes = b"", **fields: object) -> Frame:
    return server.handlers()[op](dict(fields), body)


def test_file_in_parts_is_named_only_when_whole(tmp_path: Path) -> None:
    server = Server(str(tmp_path))
    ask(server, "part", b"world", token=TOKEN, at=6)
    ask(server, "part", b"hello ", token=TOKEN, at=0)
    with pytest.raises(StoreError, match="did not arrive whole"):
        ask(server, "place", key="a/b", token=TOKEN, size=12, again=False)
    assert ask(server, "get", key="a/b", start=0, end=None).header.keys() == {"absent"}
    ask(server, "place", key="a/b", token=TOKEN, size=11, again=False)
    assert (tmp_path / "a" / "b").read_bytes() == b"hello world"
    assert os.listdir(tmp_path) == ["a"]


def test_a_placing_whose_answer_was_lost_is_done(tmp_path: Path) -> None:
    server = Server(str(tmp_path))
    ask(server, "part", b"x", token=TOKEN, at=0)
    ask(server, "place", key="k", token=TOKEN, size=1, again=False)
    ask(server, "place", key="k", token=TOKEN, size=1, again=True)
    with pytest.raises(StoreError):
        ask(server, "place", key="k", token=TOKEN, size=1, again=False)


@pytest.mark.parametrize("token", ["../x", "", "a/b", "x" * 65])
def test_a_token_leads_nowhere_else(tmp_path: Path, token: str) -> None:
    with pytest.raises(StoreError, match="names no upload"):
        ask(Server(str(tmp_path / "store")), "part", b"x", token=token, at=0)
    assert not (tmp_path / "x").exists()


def test_what_nobody_finished_goes_after_a_day(tmp_path: Path) -> None:
    ask(Server(str(tmp_path)), "part", b"x", token=TOKEN, at=0)
    path = tmp_path / f"{ARRIVING}{TOKEN}"
    now = path.stat().st_mtime
    Server(str(tmp_path), clock=lambda: now + STALE - 1)
    assert path.exists()
    Server(str(tmp_path), clock=lambda: now + STALE + 1)
    assert not path.exists()


def test_part_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / f"{ARRIVING}{TOKEN}").symlink_to(tmp_path / "mine")
    server = Server(str(tmp_path / "store"))
    with pytest.raises(StoreError):
        ask(server, "part", b"x", token=TOKEN, at=0)
    with pytest.raises(StoreError, match="did not arrive whole"):
        ask(server, "place", key="k", token=TOKEN, size=4, again=False)
    assert (tmp_path / "mine").read_text() == "mine"
