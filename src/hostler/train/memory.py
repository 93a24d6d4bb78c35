"""Memory that runs out: in how many pieces a batch goes through the model, and which of them would fit.

A batch in more pieces has the same gradient; the numbers are those of a training whose `grad_accum_steps`
was that from this step on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hostler.errors import MachineError
from hostler.sdk.checkpoint import rng
from hostler.train.config import divisors

_NOT_ONE = "a smaller model or input, amp: bf16, or a machine with more memory"


class Pieces:
    """Kept in checkpoints: a resumed training goes on with as many."""

    def __init__(self, training: int) -> None:
        self.training, self.evaluating = training, 1
        self.on_change: Callable[[str], None] = lambda text: None

    def state_dict(self) -> dict[str, Any]:
        return {"training": self.training, "evaluating": self.evaluating}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.training, self.evaluating = int(state["training"]), int(state["evaluating"])


class ForwardState:
    """State that a forward pass changes: buffers, and the generators. `put_back` undoes the pass."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
        self._chance = rng.snapshot()

    @torch.no_grad()
    def put_back(self) -> None:
        for tensor, before in self._buffers:
            tensor.copy_(before)
        rng.put_back(self._chance)


def ran_out(error: RuntimeError) -> bool:
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)


def more(batch: int, pieces: int) -> int | None:
    """The next number of pieces, at least twice as many, that divides the batch; None if there is none."""
    return next((n for n in divisors(batch) if n >= 2 * pieces), None)


def fitting(batch: int, pieces: int, goes: Callable[[int], bool]) -> int | None:
    """The fewest pieces of those that may be tried which go through."""
    found = more(batch, pieces)
    while found is not None and not goes(found):
        found = more(batch, found)
    return found


def refusal(batch: int, ranks: int, pieces: int, fits: int | None) -> MachineError:
    """In words, with what to write instead."""
    if fits is None:
        return MachineError("out of memory: the training does not fit even with one example", hint=_NOT_ONE)
    share = -(-batch // ranks)
    text = f"out of memory: a micro-batch of {-(-share // pieces)} examples does not fit"
    return MachineError(
        f"{text}; one of {-(-share // fits)} does",
        hint=f"grad_accum_steps: {fits} keeps the batch of {batch}; on_out_of_memory: halve does it itself",
    )


def refusal_of_evaluation(size: int, fits: int | None) -> MachineError:
    if fits is None:
        return MachineError("out of memory: the evaluation does not fit even with one example", hint=_NOT_ONE)
    text = f"out of memory: an evaluation with batches of {size} examples does not fit"
    return MachineError(f"{text}; {fits} do", hint=f"eval_batch_size: {fits}")
