from __future__ import annotations

import base64
import json
import shlex
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.worker.disguises import disguises
from hostler.worker.mask import Masker

WAYS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "repr": repr,
    "repr in a dict": lambda value: repr({"key": value}),
    "json": json.dumps,
    "json as it is": lambda value: json.dumps({"key": value}, ensure_ascii=False),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for the web": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "basic authentication": lambda value: base64.b64encode(f"me:{value}".encode()).decode(),
    "inside of base64": lambda value: base64.b64encode(f"user:{value}@host".encode()).decode(),
    "wrapped base64": lambda value: base64.encodebytes(value.encode()).decode(),
    "percent": lambda value: quote(value, safe=""),
    "percent in a path": quote,
    "form": quote_plus,
    "shell": shlex.quote,
    "lines": lambda value: "\n".join(f"  > {line}" for line in value.splitlines()),
}
VALUES = (
    "5ecre7-5ecre7-5ecre7",
    "a+b/c=d&e?f%g h",
    'it\'s "quoted" and $HOME `id` \\n',
    "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA75yT\nq8tKx0fP2Zw7Yc1bLmNd\n-----END KEY-----\n",
    "pässwörd-🔑-日本語",
    "s" * 30 + "ome" * 30,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", VALUES)
def test_it_is_hidden_in_what_programs_commonly_make_of_it(value: str, way: str) -> None:
    said = Masker([value]).cover(f"before {WAYS[way](value)} after")
    assert "***" in said and said.startswith("before ") and said.endswith(" after")
    for line in (one.strip() for one in value.splitlines()):
        for part in (line, repr(line)[1:-1], quote(line)):
            assert part not in said
    left = said.replace("***", "").replace("before", "").replace("after", "")
    assert len(left) < 30, "hardly anything of it is left"


@given(st.text(min_size=4, max_size=40).filter(lambda value: len(value.strip().encode()) >= 4), st.text())
def test_whatever_the_value_it_is_not_in_what_comes_out(value: str, around: str) -> None:
    assert value.strip() not in Masker([value]).cover(f"{around}{value}{around}").replace("***", "") or (
        value.strip() in around + around
    )


def test_braces_and_the_like_of_a_value_of_several_lines_stay_readable() -> None:
    assert Masker(['{\n  "key": "5ecre75ecre7"\n}']).cover('{\n}\n  "key": "5ecre75ecre7"') == "{\n}\n  ***"


def test_short_values_are_left_alone() -> None:
    assert not disguises("abc") and not disguises("  a \n")


def test_a_value_of_64_kb_takes_neither_time_nor_memory() -> None:
    value = "".join(chr(33 + n * 7919 % 90) for n in range(64 * 1024))
    begun, masker, out = time.process_time(), Masker([value]), b""
    stream = b"x" * 5000 + value.encode() + b"y" * 5000 + base64.b64encode(value.encode()) + b"z"
    for at in range(0, len(stream), 997):
        out += masker.feed(stream[at : at + 997])
    out += masker.flush()
    assert out == b"x" * 5000 + b"***" + b"y" * 5000 + b"***" + stream[-4:]
    assert time.process_time() - begun < 20
