"""Steps of a whole group: forward, backward and update of all members, with no word to the host.

On a GPU the step of one batch size is recorded once and replayed. What changes from step to step lies in
tables on the device, read at a position that the step itself moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from hostler.train.config import Config
from hostler.train.fused.averages import Averages
from hostler.train.fused.batches import Batches
from hostler.train.fused.losses import Smoothing, autocast, judge
from hostler.train.fused.optimizer import Optimizer, clip
from hostler.train.fused.stack import ModelStack
from hostler.train.graphs.recording import record

# of each member: loss, right answers; gradients of all parameters
Gradients = tuple[torch.Tensor, torch.Tensor, Sequence[torch.Tensor]]


@dataclass
class Steps:
    config: Config  # what all members have in common
    stack: ModelStack
    optimizer: Optimizer
    averages: Averages | None  # None: nobody keeps one
    batches: Batches
    clips: torch.Tensor | None  # a norm for each member; None: nobody clips
    smoothing: Smoothing
    prepare: Callable[[torch.Tensor], torch.Tensor] | None
    size: int  # of a batch
    room: int  # steps that the tables hold
    _replay: Callable[[], None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        device, members = self.batches.arrays.x.device, len(self.stack)
        wide = self.size * (1 if self.batches.shared else members)
        self._at = torch.zeros(1, dtype=torch.long, device=device)
        self._examples = torch.zeros(self.room, wide, dtype=torch.long, device=device)
        self._rates = torch.zeros(self.room, members, device=device)
        self._shares = torch.zeros(self.room, members, device=device)
        self._losses = torch.zeros(self.room, members, device=device)
        self._right = torch.zeros(members, dtype=torch.float64, device=device)

    def run(
        self, examples: torch.Tensor, rates: torch.Tensor, shares: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """([step, member] losses before each update, [member] right answers) of these steps. `shares`: of
        the weights after them in the averages."""
        count = len(examples)
        self._examples[:count].copy_(examples)
        self._rates[:count].copy_(rates)
        if shares is not None:
            self._shares[:count].copy_(shares)
        plain = self._at.device.type != "cuda" or self.config.cuda_graph is False
        step = self._step if plain else self._recorded()
        self._at.zero_()
        self._right.zero_()
        for _ in range(count):
            step()
        return self._losses[:count].clone(), self._right.clone()

    def _step(self) -> None:
        x, y = self.batches.take(self._examples.index_select(0, self._at)[0])
        if self.prepare is not None:
            x = self.prepare(x)
        parameters, weights = self.stack.parameters, self.stack.tensors
        each, right, gradients = self._gradients(x, y)
        if self.clips is not None:
            clip(gradients, self.clips)
        self.optimizer.step(parameters, gradients, self._rates.index_select(0, self._at)[0])
        if self.averages is not None:
            self.averages.update(weights, self._shares.index_select(0, self._at)[0])
        self._losses.index_copy_(0, self._at, each.detach()[None])
        self._right += right
        self._at += 1

    def _gradients(self, x: torch.Tensor, y: torch.Tensor) -> Gradients:
        """Of a batch, which goes through in as many pieces as the config says; each piece weighs as much as
        it has examples."""
        pieces = self.batches.pieces(x, y, self.config.grad_accum_steps)
        each, right, sums = self._piece(*pieces[0], y.shape[-1])
        for piece in pieces[1:]:
            losses, good, found = self._piece(*piece, y.shape[-1])
            each, right = each + losses, right + good
            sums = [a + b for a, b in zip(sums, found, strict=True)]
        return each, right, sums

    def _piece(self, x: torch.Tensor, y: torch.Tensor, whole: int) -> Gradients:
        with autocast(self.config, x.device):
            out = self.stack(x, self.stack.tensors, shared=self.batches.shared, training=True)
            each, right = judge(out, y, self.config, self.smoothing)
        if y.shape[-1] != whole:
            each = each * (y.shape[-1] / whole)
        gradients = torch.autograd.grad(each.sum(), list(self.stack.parameters.values()))
        return each.detach(), right, gradients

    def _recorded(self) -> Callable[[], None]:
        if self._replay is None:
            self._replay, _ = record(self._step, self._changed, ready=self._at.zero_)
        return self._replay

    def _changed(self) -> Iterator[torch.Tensor]:
        yield from (*self.stack.tensors.values(), self.optimizer.count)
        for slot in self.optimizer.slots.values():
            yield from slot.values()
        yield from self.averages.tensors.values() if self.averages is not None else ()
