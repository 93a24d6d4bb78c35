from __future__ import annotations

import io

import pytest

from hostler.remote import frames
from hostler.remote.frames import Frame


def test_what_is_written_is_read_and_then_the_stream_ends() -> None:
    pipe = io.BytesIO()
    sent = [Frame({"id": 1, "op": "put", "key": "ü\n"}, b"\0" * 1000), Frame(), Frame({"id": 2}, b"x")]
    for frame in sent:
        frames.write(pipe, frame)
    pipe.seek(0)
    assert [frames.read(pipe) for _ in range(4)] == [*sent, None]


def test_a_frame_that_ends_in_its_middle_is_none() -> None:
    pipe = io.BytesIO()
    frames.write(pipe, Frame({"id": 1}, b"0123456789"))
    whole = pipe.getvalue()
    for size in range(len(whole)):
        assert frames.read(io.BytesIO(whole[:size])) is None


def test_what_is_no_frame_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="not a frame"):
        frames.read(io.BytesIO(b"\xff" * 100))
