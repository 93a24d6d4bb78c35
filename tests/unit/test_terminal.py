from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler import terminal

OBEYED = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))} - {"\n", "\t"}
OBEYED |= {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text(st.one_of(st.characters(), st.sampled_from(sorted(OBEYED)))))
def test_visible_text_holds_nothing_that_is_obeyed(text: str) -> None:
    shown = terminal.visible(text)
    assert not OBEYED & set(shown)
    if not OBEYED & set(text):
        assert shown == text


def test_signs_name_what_stood_there() -> None:
    assert terminal.visible("\x1b[31mred\x07\x7f\x9b2J\u202e\tnext\r\n") == "␛[31mred␇␡\\x9b2J\\u202e\tnext\n"


@given(st.text(), st.text())
def test_guarded_stream_passes_own_sequences_alone(before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, Screen(newline=""))
        below = sys.stdout
        terminal.guard()
        sys.stdout.write(before + terminal.own("\x1b[1m") + after + "\x1b[1m" + terminal.own("\r"))
        assert isinstance(below, Screen)
        expected = terminal.visible(before) + "\x1b[1m" + terminal.visible(after + "\x1b[1m") + "\r"
        assert below.getvalue() == expected


def test_own_sequences_are_left_out_of_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    below = io.StringIO()
    monkeypatch.setattr(sys, "stdout", below)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    terminal.guard()
    print(terminal.own("\r\x1b[K") + "10 MB" + terminal.own("\x1b[0m"))
    assert below.getvalue() == "10 MB\n"
    assert terminal.unguarded(sys.stdout) is below
    assert not hasattr(sys.stdout, "buffer")


def test_last_state_of_a_progress_bar_stands() -> None:
    assert terminal.last_overwrite("\r10%\r20%\r") == "20%"
    assert terminal.last_overwrite("plain") == "plain" and terminal.last_overwrite("\r") == ""
