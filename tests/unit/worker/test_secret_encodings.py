from __future__ import annotations

import base64
import json
import re
import shlex
import textwrap
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.worker.prepare.mask import Masker
from hostler.worker.prepare.secret_encodings import encodings

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
    "percent, small": lambda value: re.sub("%..", lambda one: one[0].lower(), quote(value, safe="")),
    "form, small": lambda value: re.sub("%..", lambda one: one[0].lower(), quote_plus(value)),
    "percent twice": lambda value: quote(quote(value, safe=""), safe=""),
    "percent of a whole URL": lambda value: quote(value, safe="()*!';/?:@&=+$,#"),
    "repr of bytes": lambda value: repr(value.encode()),
    "repr of bytes with both quotes": lambda value: repr(b"'\"" + value.encode()),
    "json in json": lambda value: json.dumps({"body": json.dumps({"key": value})}),
    "json as it is in json": lambda value: json.dumps(json.dumps(value, ensure_ascii=False)),
    "repr of json": lambda value: repr(json.dumps({"key": value})),
    "json of repr of bytes": lambda value: json.dumps(repr(value.encode())),
    "base64 in a URL": lambda value: quote(base64.b64encode(f"me:{value}".encode()), safe=""),
    "base64 in json of others": lambda value: base64.b64encode(value.encode()).decode().replace("/", "\\/"),
    "base64 of 64 columns": lambda value: "\n".join(
        textwrap.wrap(base64.b64encode(value.encode()).decode(), 64)
    ),
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


@given(
    st.text(st.characters(codec="utf-8"), min_size=4, max_size=40).filter(lambda one: len(one.strip()) >= 4),
    st.sampled_from(sorted({*WAYS} - {"lines"})),
)
def test_any_value_is_hidden_in_any_form(value: str, way: str) -> None:
    said = Masker([value]).cover(f"<{WAYS[way](value)}>")
    assert "***" in said and WAYS[way](value) not in said and len(said.replace("***", "")) < 30


@given(st.binary(max_size=5), st.text("abcXYZ09+/-_.:@", min_size=6, max_size=40), st.binary(max_size=5))
def test_base64_of_longer_text_hides_the_value_inside(before: bytes, value: str, after: bytes) -> None:
    encoded = base64.b64encode(before + value.encode() + after).decode()
    left = Masker([value]).cover(encoded)
    assert left.count("***") >= 1 and len(left.replace("***", "")) <= 4 * (len(before + after) // 3 + 4)


@given(st.text(min_size=4, max_size=40).filter(lambda value: len(value.strip().encode()) >= 4), st.text())
def test_whatever_the_value_it_is_not_in_what_comes_out(value: str, around: str) -> None:
    assert value.strip() not in Masker([value]).cover(f"{around}{value}{around}").replace("***", "") or (
        value.strip() in around + around
    )


def test_braces_in_a_value_of_several_lines_stay_readable() -> None:
    assert Masker(['{\n  "key": "5ecre75ecre7"\n}']).cover('{\n}\n  "key": "5ecre75ecre7"') == "{\n}\n  ***"


def test_short_values_are_left_alone() -> None:
    assert not encodings("abc") and not encodings("  a \n")


def test_a_value_of_64_kb_takes_neither_time_nor_memory() -> None:
    value = "".join(chr(33 + n * 7919 % 90) for n in range(64 * 1024))
    begun, masker, out = time.process_time(), Masker([value]), b""
    stream = b"x" * 5000 + value.encode() + b"y" * 5000 + base64.b64encode(value.encode()) + b"z"
    for at in range(0, len(stream), 997):
        out += masker.feed(stream[at : at + 997])
    out += masker.flush()
    assert out == b"x" * 5000 + b"***" + b"y" * 5000 + b"***" + stream[-4:]
    assert time.process_time() - begun < 20
