from __future__ import annotations

from hostler.records import layout
from hostler.records.series.logs import LogReader, LogWriter
from hostler.store.memory import MemoryStore


def printed(store: MemoryStore) -> None:
    for attempt in (1, 3):
        writer = LogWriter(store, "r", attempt)
        for n in range(10):
            writer.write(f"{attempt}.{n}\n".encode())


def texts(reader: LogReader) -> list[str]:
    return [piece.data.decode().strip() for piece in reader.read()]


def test_reader_near_the_end_reads_little_and_continues_there() -> None:
    store = MemoryStore()
    printed(store)
    reader = LogReader(store, "r")
    reader.start_near_end(2)
    assert texts(reader)[-2:] == ["3.8", "3.9"]
    LogWriter(store, "r", 5).write(b"more\n")
    assert texts(reader) == ["more"]


def test_near_the_end_of_one_attempt_is_its_own_end() -> None:
    store = MemoryStore()
    printed(store)
    reader = LogReader(store, "r", attempt=1)
    reader.start_near_end(3)
    assert texts(reader)[-3:] == ["1.7", "1.8", "1.9"]


def test_asking_for_more_lines_than_there_are_reads_all() -> None:
    store = MemoryStore()
    printed(store)
    reader = LogReader(store, "r")
    reader.start_near_end(1000)
    assert len(texts(reader)) == 20


def test_what_earlier_attempts_printed_can_be_left_out() -> None:
    store = MemoryStore()
    for attempt, text in ((1, b"one"), (3, b"three"), (4, b"four")):
        LogWriter(store, "0000000-s-abc", attempt).write(text)
    pieces = LogReader(store, "0000000-s-abc", later_than=3).read()
    assert [(piece.attempt, piece.data) for piece in pieces] == [(4, b"four")]


def test_stray_name_is_said_and_later_pieces_are_read() -> None:
    store, said = MemoryStore(), list[str]()
    printed(store)
    stray = f"{layout.logs('r')}notes.txt"
    store.put(stray, b"not of the run\n")
    reader = LogReader(store, "r", say=said.append)
    assert texts(reader)[-1] == "3.9"
    LogWriter(store, "r", 5).write(b"more\n")
    assert texts(reader) == ["more"]
    assert said and all(line.startswith(f"{stray} is left out") for line in said)
