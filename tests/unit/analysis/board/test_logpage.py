"""A run's log for the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.analysis.board import logpage
from hostler.records import layout
from hostler.store.folder import FolderStore

RUN = "0000000-s-abc"


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path)


def put(store: FolderStore, n: int, data: bytes) -> None:
    store.put(layout.log_fragment(RUN, 1, 0, n), data)


def test_character_cut_between_two_pieces_is_whole_in_the_page(store: FolderStore) -> None:
    bar = "50% █▌ é\n".encode()
    cuts = [bar[:5], bar[5:7], bar[7:9], bar[9:]]
    put(store, 0, cuts[0])
    found = logpage.tail(store, RUN)
    shown = [found["text"]]
    for n, piece in enumerate(cuts[1:], start=1):
        put(store, n, piece)
        found = logpage.since(store, RUN, found["after"])
        shown.append(found["text"])
    assert "".join(shown) == bar.decode()
    assert logpage.since(store, RUN, found["after"]) == {"text": "", "after": found["after"]}


def test_bytes_that_are_not_text_are_shown_and_block_nothing(store: FolderStore) -> None:
    put(store, 0, b"a\xffb\n")
    assert logpage.tail(store, RUN)["text"] == "a�b\n"


@pytest.mark.parametrize("after", ["runs/x/logs/", "", "nonsense#zz", f"{layout.logs(RUN)}#zz"])
def test_a_place_that_nobody_gave_is_the_beginning(store: FolderStore, after: str) -> None:
    put(store, 0, b"all\n")
    assert logpage.since(store, RUN, after)["text"] == "all\n"


def test_search_in_an_overwritten_line_shows_the_newest_match(store: FolderStore) -> None:
    put(store, 0, b" 1% loss 3\r 2% loss 2\r 3% done\nnext\n")
    assert logpage.search(store, RUN, "LOSS")["lines"] == [{"line": 1, "text": " 2% loss 2"}]


def test_stray_name_is_not_shown_and_hides_no_later_text(store: FolderStore) -> None:
    put(store, 0, b"one\n")
    store.put(f"{layout.logs(RUN)}notes.txt", b"not of the run\n")
    found = logpage.tail(store, RUN)
    put(store, 1, b"two\n")
    assert found["text"] == "one\n" and logpage.since(store, RUN, found["after"])["text"] == "two\n"
    assert logpage.search(store, RUN, "not")["count"] == 0
