"""Small records: unique to each write, and refused where they cannot be understood."""

from __future__ import annotations

import math

import pytest

from hostler.errors import DamagedError, NewerFormatError
from hostler.records.body import decode, encode
from hostler.spec.job import Job, from_json, to_json


def test_two_writes_of_the_same_record_differ() -> None:
    assert encode({"a": 1}) != encode({"a": 1})


def test_what_was_written_is_read_nan_and_all() -> None:
    found = decode(encode({"a": "ü", "b": math.inf, "c": math.nan, "token": "mine"}), "k")
    assert (found["a"], found["b"], found["token"], found["format"]) == ("ü", math.inf, "mine", 1)
    assert math.isnan(found["c"])


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'"text"', b"7", b"\xff\xfe", b"null"])
def test_bytes_that_are_not_a_record_are_damaged_and_named(data: bytes) -> None:
    with pytest.raises(DamagedError, match="sweeps/x"):
        decode(data, "sweeps/x")


def test_a_newer_format_is_refused_with_what_to_do() -> None:
    with pytest.raises(NewerFormatError, match="upgrade"):
        decode(b'{"format": 2}', "k")


def test_newer_job_is_refused_and_unknown_key_of_ours_accepted() -> None:
    record = to_json(Job(name="a", command=("x",)))
    assert from_json({**record, "colour": "blue"}).name == "a"
    with pytest.raises(NewerFormatError):
        from_json({**record, "format": 2})
