"""Losses of single steps on their way from the device to the log: read once they are there, so that no step
waits for one. Those that are still on their way are kept in checkpoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from hostler.frozen import dataclass

AHEAD = 2  # losses that may be on their way: the host is not further ahead of the device


@dataclass(frozen=True)
class _Loss:
    step: int
    there: torch.Tensor  # a number on the device that no later step changes
    here: torch.Tensor
    event: torch.cuda.Event | None  # None: it is here

    @property
    def is_here(self) -> bool:
        return self.event is None or bool(self.event.query())  # type: ignore[no-untyped-call]

    def value(self) -> float:
        if self.event is not None:
            self.event.synchronize()
        return float(self.here)


class Looks:
    def __init__(self) -> None:
        self._waiting: deque[_Loss] = deque()

    def add(self, step: int, loss: torch.Tensor) -> None:
        tensor = loss.detach().clone()
        if tensor.device.type != "cuda":
            self._waiting.append(_Loss(step, tensor, tensor, None))
            return
        here = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        here.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        event.record()
        self._waiting.append(_Loss(step, tensor, here, event))

    def arrived(self, *, all_of_them: bool = False) -> Iterator[tuple[int, float]]:
        """(step, loss) of those that are here, in order; waits for what is too far behind."""
        while self._waiting and (all_of_them or len(self._waiting) > AHEAD or self._waiting[0].is_here):
            first = self._waiting.popleft()
            yield first.step, first.value()

    def state_dict(self) -> dict[str, Any]:
        return {
            "steps": [loss.step for loss in self._waiting],
            "losses": [loss.there for loss in self._waiting],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._waiting.clear()
        for step, loss in zip(state["steps"], state["losses"], strict=True):
            self.add(int(step), loss)
