"""Checkpoints of what lies on a real GPU: random numbers, tensors, and a copy through pinned memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.attempt import nvml
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from things import Thing

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not nvml.gpus(), reason="there is no NVIDIA GPU on this machine"),
]


@pytest.fixture
def torch() -> Any:
    found = servers.library("torch")
    if not found.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return found


def checkpointer(folder: Path) -> Checkpointer:
    return Checkpointer(folder, policy=SavePolicy(every_steps=1), say=print)


def test_a_training_on_the_gpu_goes_on_to_the_bit(torch: Any, tmp_path: Path) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)

    def make() -> tuple[Any, Any, Any]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 1)
        ).cuda()
        return model, torch.optim.AdamW(model.parameters(), 0.01, fused=True), torch.amp.GradScaler("cuda")

    def step(model: Any, optimizer: Any, scaler: Any) -> None:
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(32, 64, device="cuda")).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    names = ("model", "optimizer", "scaler")
    first = make()
    for _ in range(4):
        step(*first)
    one = checkpointer(tmp_path)
    one.track(**dict(zip(names, first, strict=True)))
    one.save(4, {}, wait=True)
    one.close()
    for _ in range(4):
        step(*first)
    second, other = make(), checkpointer(tmp_path)
    assert other.restore()
    other.track(**dict(zip(names, second, strict=True)))
    other.resume_rng()
    for _ in range(4):
        step(*second)
    assert all(map(torch.equal, first[0].parameters(), second[0].parameters()))


def test_tensors_come_back_to_the_gpu_tied_as_they_were(torch: Any, tmp_path: Path) -> None:
    flat = torch.randn(1000, device="cuda")
    state = {"whole": flat, "part": flat[10:20], "half": flat.half(), "turned": flat.view(10, 100).t()}
    one = checkpointer(tmp_path)
    one.track(thing=Thing(**state))
    one.save(1, {}, wait=True)
    thing, other = Thing(), checkpointer(tmp_path)
    assert other.restore()
    other.track(thing=thing)
    assert all(torch.equal(thing.state[name], tensor) for name, tensor in state.items())
    assert all(tensor.device == flat.device for tensor in thing.state.values())
    thing.state["whole"][10] = 7.0
    assert thing.state["part"][0] == 7.0


def test_copy_is_of_the_moment_and_uses_pinned_memory(torch: Any, tmp_path: Path) -> None:
    tensor = torch.ones(1 << 28, device="cuda")  # 1 GB
    one = checkpointer(tmp_path)
    one.track(thing=Thing(tensor=tensor))
    one.save(1, {}, wait=True)  # makes the memory
    pinned = torch.empty(1 << 28, pin_memory=True)
    floor, ours = [], []
    for n in range(2, 6):
        begun = time.perf_counter()
        pinned.copy_(tensor, non_blocking=True)
        torch.cuda.synchronize()
        floor.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        one.save(n, {})
        ours.append(time.perf_counter() - begun)
        tensor.fill_(float(n))  # while it is being written
        one.wait()
    print(f"the loop waits {min(ours):.3f} s, a pinned copy takes {min(floor):.3f} s")
    assert min(ours) < 1.5 * min(floor) + 0.01
    thing, other = Thing(), checkpointer(tmp_path)
    assert other.restore()
    other.track(thing=thing)
    assert bool((thing.state["tensor"] == 4.0).all())
