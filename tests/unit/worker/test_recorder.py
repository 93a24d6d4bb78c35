from __future__ import annotations

import pytest

from hostler.errors import MachineError, StoreUnreachable
from hostler.records.body import Record
from hostler.worker.recorder import Recorder


def test_what_was_seen_is_written_once() -> None:
    written: list[Record] = []
    recorder = Recorder(lambda: {"x": 1}, written.append)
    recorder.start()
    recorder.finish()
    assert written == [{"x": 1}]


def test_what_could_not_be_written_is_written_at_the_end() -> None:
    away, written = [True], list[Record]()

    def write(record: Record) -> None:
        if away[0]:
            raise StoreUnreachable("away")
        written.append(record)

    recorder = Recorder(lambda: {"x": 1}, write)
    recorder.start()
    with pytest.raises(StoreUnreachable):
        recorder.finish()
    away[0] = False
    recorder.finish()
    recorder.finish()
    assert written == [{"x": 1}]


def test_a_python_that_does_not_answer_is_a_problem_in_the_record() -> None:
    written: list[Record] = []

    def look() -> Record:
        raise MachineError("python does not start")

    recorder = Recorder(look, written.append)
    recorder.start()
    recorder.finish()
    assert written == [{"problem": "python does not start"}]
