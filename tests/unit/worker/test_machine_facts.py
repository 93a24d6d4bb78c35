"""What attempts run on, as one worker writes it down."""

from __future__ import annotations

import threading

import pytest

from hostler.records import layout
from hostler.records.run import surroundings as records
from hostler.spec.job import Source
from hostler.store.memory import MemoryStore
from hostler.worker.run import surroundings
from hostler.worker.run.surroundings import Command, Surroundings


def command(exe: str = "python", *words: str) -> Command:
    return Command(exe, words, Source(snapshot="abc"), lambda text: text.replace("s3cret", "***"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def capture(exe: str, *_: object, **__: object) -> dict[str, object]:
        found.append(exe)
        return {"python": {"exe": exe}, "packages": {"a": "1"}}

    monkeypatch.setattr(surroundings, "capture", capture)
    return found


def test_shared_facts_are_read_once_a_second_and_written_once(asked: list[str]) -> None:
    store, one, writes = MemoryStore(), Surroundings(), []
    store.before = lambda operation, key: writes.append(key) if operation == "put" else None
    for n in range(300):
        one.ran(store, command("python", "--n", str(n)), now=n / 100)
    assert asked == ["python"] * 3 and len(writes) == 1
    one.ran(store, command("other"), now=3.0)
    assert len(writes) == 2


def test_a_write_that_failed_is_made_up_for(asked: list[str]) -> None:
    store, one = MemoryStore(), Surroundings()

    def fail(operation: str, key: str) -> None:
        raise OSError("no")

    store.before = fail
    with pytest.raises(OSError, match="no"):
        one.ran(store, command(), now=1.0)
    store.before = lambda operation, key: None
    name = one.ran(store, command(), now=1.1)["facts"]
    assert list(store.list(layout.surroundings(name)))


def test_a_reader_finds_the_whole_and_no_secret(asked: list[str]) -> None:
    store = MemoryStore()
    ran = Surroundings().ran(store, command("python", "--key", "s3cret"), now=1.0)
    entries = [{"kind": "claim"}, {"kind": "stop-request"}, {"kind": "end", "ran": ran}]
    found = records.of_attempt(store, "0000000-a-1", 1, entries)
    assert found is not None and found["packages"] == {"a": "1"}
    assert found["command"] == ["--key", "***"] and found["source"]["snapshot"] == "abc"
    assert records.of_attempt(store, "0000000-a-1", 1, [{"kind": "claim"}, {"kind": "claim"}]) is None


def test_the_record_of_an_attempt_that_lasted_is_its_own(asked: list[str]) -> None:
    store = MemoryStore()
    records.write(store, "0000000-a-1", 1, {"packages": {}})
    found = records.of_attempt(store, "0000000-a-1", 1, [{"kind": "claim"}, {"kind": "end"}])
    assert found is not None and found["packages"] == {}


def test_run_that_begins_meanwhile_waits_for_the_facts_of_another(asked: list[str]) -> None:
    store, one, writes, others = MemoryStore(), Surroundings(), list[str](), list[threading.Thread]()

    def also(operation: str, key: str) -> None:
        if operation == "put":
            writes.append(key)
        if not others:
            others.append(threading.Thread(target=one.ran, args=(store, command()), kwargs={"now": 1.0}))
            others[0].start()
            others[0].join(0.05)

    store.before = also
    one.ran(store, command(), now=1.0)
    others[0].join()
    assert len(writes) == 1
