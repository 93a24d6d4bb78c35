"""A training's state at one moment, in host memory: what the loop waits for, and all it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.sdk.checkpoint import copying, rng, torch_state
from hostler.sdk.checkpoint.capture import Capture, Captured
from hostler.sdk.checkpoint.host_memory import HostMemory, Make
from hostler.sdk.checkpoint.tracked import Tracked


@dataclass(frozen=True)
class Taken:
    captured: Captured
    data: memoryview = field(repr=False)


def take(memory: HostMemory, objects: Mapping[str, Tracked], state: Mapping[str, Any]) -> Taken:
    """Everything as it is now. Whatever a user's `state_dict` raises, this raises."""
    capture = Capture()
    capture.add("rng", rng.snapshot(), under=("rng",))
    capture.add("state", state, under=("run",))
    capture.add("objects", {name: one.state() for name, one in objects.items()})
    captured = capture.close()
    data = memory.take(captured.plan.size, _kind(captured))
    copying.copy(captured.plan, data)
    torch_state.synchronize()
    return Taken(captured, data)


def prepare(memory: HostMemory, objects: Mapping[str, Tracked]) -> None:
    """Have memory ready for what `take` will need, beside the loop."""
    capture = Capture()
    capture.add("objects", {name: one.state() for name, one in objects.items()})
    captured = capture.close()
    memory.warm(captured.plan.size, _kind(captured))


def _kind(captured: Captured) -> Make | None:
    return torch_state.pinned if captured.cuda else None
