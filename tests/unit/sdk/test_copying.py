"""Tensors into host memory."""

from __future__ import annotations

import ctypes
import threading

import pytest

from hostler.sdk.checkpoint import host_memory, safetensors, taken
from hostler.sdk.checkpoint.host_memory import HostMemory
from hostler.sdk.checkpoint.safetensors import TensorSlot


def slot(name: str, data: bytes, *, by_address: bool) -> TensorSlot:
    held = ctypes.create_string_buffer(data, len(data)) if data else None
    address = ctypes.addressof(held) if held is not None and by_address else None

    def copy(to: memoryview) -> None:
        to[:] = bytes(held or b"")

    return TensorSlot(name, "U8", (len(data),), copy, address)


@pytest.mark.parametrize("worth", [0, 1 << 40], ids=["several threads", "one"])
def test_every_tensor_comes_to_its_place(monkeypatch: pytest.MonkeyPatch, worth: int) -> None:
    monkeypatch.setattr(taken, "WORTH", worth)
    monkeypatch.setattr(taken, "PIECE", 1000)
    data = {f"t{n}": bytes([n]) * (n * 777) for n in range(12)}
    plan = safetensors.plan([slot(name, one, by_address=len(name) % 2 == 0) for name, one in data.items()])
    memory = host_memory.fresh(plan.size)
    taken.copy(plan, memory)
    found = safetensors.parse(memoryview(plan.header + bytes(memory)))
    assert {name: bytes(one.data) for name, one in found.items()} == data


def test_the_memory_is_kept_from_save_to_save_and_grows() -> None:
    memory = HostMemory()
    first = memory.take(1000)
    first[0] = 9
    assert memory.take(900)[0] == 9, "the same"
    assert len(memory.take(5000)) == 5000 and memory.take(0).nbytes == 0


def test_save_takes_the_memory_made_ready_beside_the_loop() -> None:
    memory = HostMemory()
    memory.warm(10_000).join()
    taken = memory.take(10_000)
    assert len(taken) == 10_000 and not any(taken)


def test_memory_is_touched_before_anybody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, touching, go_on = HostMemory(), threading.Event(), threading.Event()
    touch = ctypes.memset

    def slow(*given: int) -> None:
        touching.set()
        assert go_on.wait(30)
        touch(*given)

    monkeypatch.setattr(ctypes, "memset", slow)
    warming = memory.warm(1000)
    assert touching.wait(30)
    taken = list[bytes]()

    def take() -> None:
        data = memory.take(1000)
        data[:4] = b"rng!"
        taken.append(bytes(data[:4]))

    saving = threading.Thread(target=take)
    saving.start()
    saving.join(0.1)  # it must wait for the touch
    go_on.set()
    saving.join()
    warming.join()
    assert taken == [b"rng!"] and bytes(memory.take(1000)[:4]) == b"rng!"
