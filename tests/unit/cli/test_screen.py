"""A table on a terminal: what is cut where it is narrow, and what stands in place of what."""

from __future__ import annotations

import io
import re
import sys

import click
import pytest

from hostler.cli.terminal import screen
from hostler.cli.terminal.screen import Live, fitted, lines, shorten, width


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def plain(row: int, column: int, text: str) -> str:
    return text


def test_letters_take_the_cells_they_take() -> None:
    assert width("abc") == 3
    assert width("模型") == 4
    assert width("e\u0301") == 1


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 4, "abc…"),
        ("模型模型", 5, "模型…"),
        ("模型模型", 4, "模…"),
        ("ab", 0, ""),
    ],
)
def test_what_does_not_fit_is_cut_with_an_ellipsis(text: str, room: int, shown: str) -> None:
    assert shorten(text, room) == shown and width(shorten(text, room)) <= room


def test_a_table_that_fits_is_left_as_it_is() -> None:
    drawn = lines(("name", "state"), [("a", "done"), ("long-name", "failed")], (4, 5), 80, plain)
    assert drawn == ["name       state", "a          done", "long-name  failed"]


def test_the_widest_columns_give_way_first_and_firm_ones_last() -> None:
    assert fitted([10, 40, 30], [10, 5, 5], 84) == [10, 40, 30]
    assert fitted([10, 40, 30], [10, 5, 5], 74) == [10, 30, 30]
    assert sum(fitted([10, 40, 30], [10, 5, 5], 40)) == 36 and fitted([10, 40, 30], [10, 5, 5], 40)[0] == 10
    assert fitted([10, 40, 30], [10, 5, 5], 12) != [10, 5, 5]
    assert sum(fitted([10, 40, 30], [10, 5, 5], 12)) == 8


@pytest.mark.parametrize("room", [12, 20, 33, 57, 80])
def test_no_line_is_wider_than_the_terminal(room: int) -> None:
    rows = [("sweep/1", "running", "loss=0.5 accuracy=0.75", "模型=大" * 5), ("x" * 50, "done", "", "lr=0.1")]
    drawn = lines(("name", "state", "metrics", "parameters"), rows, (4, 5, 7, 10), room, plain)
    assert max(map(width, drawn)) <= room


def test_colours_take_no_room_and_controls_are_escaped() -> None:
    drawn = lines(
        ("name", "state"), [("a\x1b[2Jb\n", "done")], (4, 4), 80, lambda row, column, text: f"<{row}:{text}>"
    )
    assert drawn == ["<-1:name>     <-1:state>", "<0:a␛[2Jb␊>  <0:done>"]


def test_next_lines_replace_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with Live() as live:
        live.show(["one", "two"])
        live.show(["three"])
    said = stream.getvalue()
    assert said.startswith(screen.HIDE) and said.endswith(screen.SHOW)
    assert f"one\ntwo\n{screen.UP_AND_ERASE * 2}three\n" in said


def test_what_is_printed_meanwhile_stands_above_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err, apart = io.StringIO(), Screen(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with Live() as live:
        live.show(["table"])
        click.echo("a line")
        print("half", end="")
        print(" and half")
        click.echo("to people", err=True)
        live.show(["table"])
        print("unended", end="")
    assert sys.stdout is out and sys.stderr is err
    monkeypatch.setattr(sys, "stderr", apart)
    with Live():
        click.echo("into a file", err=True)
    assert apart.getvalue() == "into a file\n"
    left: list[str] = []
    for piece in re.split(r"(\x1b\[1A\x1b\[2K|\n)", re.sub(r"\x1b\[\?25[lh]", "", out.getvalue())):
        if piece == screen.UP_AND_ERASE:
            left.pop()
        elif piece.strip():
            left.append(piece)
    assert left == ["a line", "half and half", "to people", "unended", "table"]


def test_last_cell_of_a_long_row_goes_on_below_itself() -> None:
    rows = [("1", "lost"), ("2", "went on from step 50 of attempt 2")]
    assert screen.columns(rows, room=27) == ["  1  lost", "  2  went on from step 50", "     of attempt 2"]
    assert screen.columns(rows)[1] == "  2  went on from step 50 of attempt 2", "whole in a pipe"


def test_long_message_hangs_and_loses_nothing() -> None:
    text = "  broken/1 failed: no such file: /data/of/a/very/long/path/indeed"
    shown = screen.hanging(text, 24)
    assert shown == "  broken/1 failed: no\n    such file:\n    /data/of/a/very/long/path/indeed"
    assert screen.hanging("weights are odd", 20, first=10) == "weights\n    are odd"
