from __future__ import annotations

from hostler.records.run.attempt import copy_end
from hostler.records.run.log import RunKey
from hostler.records.sweep.ends import WHOLE, EndReader
from hostler.store.memory import MemoryStore


def end(store: MemoryStore, index: int, state: str = "done", k: int = 2) -> None:
    copy_end(store, RunKey("s", f"{index:07d}-s-x"), k, {"kind": "end", "state": state})


def states(reader: EndReader) -> dict[int, str]:
    return {int(run[:7]): found["state"] for run, found in reader.update().items()}


def test_ends_are_found_in_whatever_order_they_come() -> None:
    store = MemoryStore()
    reader = EndReader(store, "s")
    assert states(reader) == {}
    end(store, 2)
    assert states(reader) == {2: "done"}
    end(store, 0, "failed")
    end(store, 1)
    assert states(reader) == {0: "failed", 1: "done", 2: "done"}


def test_each_end_is_read_once_and_early_ones_never_listed() -> None:
    store = MemoryStore()
    reader = EndReader(store, "s")
    for index in range(5):
        end(store, index)
    reader.update()
    asked: list[str] = []
    store.before = lambda op, key: asked.append(op)
    end(store, 5)
    asked.clear()
    assert len(reader.update()) == 6
    assert asked.count("get") == 1


def test_end_after_a_reopen_is_found_within_a_few_looks() -> None:
    store = MemoryStore()
    reader = EndReader(store, "s")
    end(store, 0, "failed")
    reader.update()
    end(store, 0, "done", k=5)
    for _ in range(WHOLE):
        found = states(reader)
    assert found == {0: "done"}


def test_only_some_runs_may_be_asked_for() -> None:
    store = MemoryStore()
    for index in range(3):
        end(store, index)
    assert set(EndReader(store, "s").update({"0000001-s-x"})) == {"0000001-s-x"}
    assert EndReader(store, "s").names() == {f"{n:07d}-s-x" for n in range(3)}
