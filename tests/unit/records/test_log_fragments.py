"""What a run printed, in pieces, and read on from where one stopped."""

from __future__ import annotations

from hostler.records import layout
from hostler.records.series.logs import LogReader, LogWriter
from hostler.store import Store

RUN = "0000000-s-abc"


def test_a_log_is_read_on_in_order_of_attempts(store: Store) -> None:
    first, second, reader = LogWriter(store, RUN, 1), LogWriter(store, RUN, 2), LogReader(store, RUN)
    first.write(b"a\n")
    first.write(b"b\n")
    assert [(piece.attempt, piece.data) for piece in reader.read()] == [(1, b"a\n"), (1, b"b\n")]
    assert [*reader.read()] == []
    second.write(b"c\n")
    assert [piece.data for piece in reader.read()] == [b"c\n"]
    assert [piece.data for piece in LogReader(store, RUN, attempt=2).read()] == [b"c\n"]


def test_a_piece_that_was_deleted_is_left_out(store: Store) -> None:
    writer = LogWriter(store, RUN, 1)
    writer.write(b"a")
    writer.write(b"b")
    store.delete(layout.log_fragment(RUN, 1, 0, 0))
    assert [piece.data for piece in LogReader(store, RUN).read()] == [b"b"]
