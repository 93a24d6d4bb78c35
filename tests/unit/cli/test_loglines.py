from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hostler.cli.terminal.loglines import LogLines, Text
from hostler.records.series.logs import LogPiece


def taken(lines: LogLines) -> list[tuple[int, str]]:
    return list(lines.take())


def test_a_line_cut_between_two_pieces_is_one_line() -> None:
    lines = LogLines()
    lines.add(LogPiece(1, b"gr"))
    assert taken(lines) == []
    lines.add(LogPiece(1, "üß".encode()[:1]))
    lines.add(LogPiece(1, "üß".encode()[1:] + b"\nrest"))
    assert taken(lines) == [(1, "grüß")]
    lines.finish()
    assert taken(lines) == [(1, "rest")]


def test_a_new_attempt_ends_the_line_of_the_one_before() -> None:
    lines = LogLines()
    lines.add(LogPiece(1, b"killed he"))
    lines.add(LogPiece(3, b"again\n"))
    assert taken(lines) == [(1, "killed he"), (3, "again")]


def test_tail_cuts_what_is_there_and_nothing_that_comes() -> None:
    lines = LogLines(tail=1)
    lines.add(LogPiece(1, b"a\nb\n"))
    assert taken(lines) == [(1, "b")]
    lines.add(LogPiece(1, b"c\nd\n"))
    assert taken(lines) == [(1, "c"), (1, "d")]


def test_tail_counts_only_lines_that_match() -> None:
    lines = LogLines(re.compile("x"), tail=2)
    lines.add(LogPiece(1, b"x1\nx2\nx3\ny\n"))
    assert [line for _, line in taken(lines)] == ["x2", "x3"]


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_however_it_is_cut_it_is_the_same_text(pieces: list[bytes]) -> None:
    lines, whole = LogLines(), b"".join(pieces)
    for piece in pieces:
        lines.add(LogPiece(1, piece))
    lines.finish()
    expected = whole.decode("utf-8", "replace").split("\n")
    assert [line for _, line in taken(lines)] == (expected if expected[-1] else expected[:-1])


def test_live_text_keeps_one_bar_line_per_piece() -> None:
    text = Text()
    pieces = [b"start ", b"now\r\n\r10%\r20%", b"\r30%\r", b"\n\xe2\x82", b"\xac\n"]
    assert [text.of(piece) for piece in pieces] == ["start ", "now\n20%", "\n30%", "\n", "€\n"]
