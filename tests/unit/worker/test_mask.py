from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from hostler.worker.prepare.mask import Masker

letters = st.text("ab", max_size=60)
secrets = st.lists(st.text("ab", min_size=4, max_size=8), max_size=4)


@given(letters, secrets, st.lists(st.integers(0, 60)))
def test_result_does_not_depend_on_how_the_stream_is_cut(
    text: str, values: list[str], cuts: list[int]
) -> None:
    masker, out, places = (
        Masker(values),
        b"",
        sorted({0, len(text), *(cut for cut in cuts if cut < len(text))}),
    )
    for begin, end in itertools.pairwise(places):
        out += masker.feed(text[begin:end].encode())
    out += masker.flush()
    longest_first = "|".join(map(re.escape, sorted(values, key=len, reverse=True))) or "(?!)"
    assert out.decode() == re.sub(longest_first, "***", text)


def test_secret_cut_in_two_is_hidden_without_other_delay() -> None:
    masker = Masker(["hunter22"])
    assert masker.feed(b"key=hun") == b"key="
    assert masker.feed(b"ter22 done\n") == b"*** done\n"
    assert masker.flush() == b""


def test_text_that_only_began_like_a_secret_comes_out_finally() -> None:
    masker = Masker(["hunter22"])
    assert masker.feed(b"hunt") + masker.flush() == b"hunt"


def test_values_shorter_than_four_are_left_alone() -> None:
    assert Masker(["abc", ""]).cover("abc abcd") == "abc abcd"


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    assert Masker(["abcd", "abcd1234"]).cover("token abcd1234!") == "token ***!"


def test_bytes_that_are_no_text_pass_through() -> None:
    assert Masker(["söcret"]).feed("a söcret b".encode() + b"\xff\n") == b"a *** b\xff\n"


def test_whole_secret_waits_while_it_may_be_a_longer_one() -> None:
    masker = Masker(["abcd", "abcd1234"])
    assert masker.feed(b"abcd") == b""
    assert masker.feed(b"1234!") == b"***!"
    assert masker.feed(b"abcd") + masker.feed(b"12x") == b"***12x"


@given(st.lists(st.integers(0, 80)))
def test_traceback_names_the_project_file_however_it_is_cut(cuts: list[int]) -> None:
    text = b'at /r/work/x\n  File "/r/work/src/a.py", line 3\n  File "/r/works/b.py", line 4 File "/r'
    masker, out = Masker(["hunter22"], ["/r/work"]), b""
    for begin, end in itertools.pairwise(sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})):
        out += masker.feed(text[begin:end])
    out += masker.flush()
    assert out == text.replace(b'"/r/work/', b'"')
