"""Steps of a whole group: forward, backward and update of all members, with no word to the host.

On a GPU the step of one batch size is recorded once and replayed. What changes from step to step lies in
tables on the device, read at a position that the step itself moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

from hostler.train.config import Config
from hostler.train.data.augment import Augment
from hostler.train.data.chance import Chance
from hostler.train.fused.alike import Apart
from hostler.train.fused.averages import Averages
from hostler.train.fused.batches import Batches
from hostler.train.fused.losses import Smoothing, autocast, judge
from hostler.train.fused.optimizer import Optimizer, clip
from hostler.train.fused.scaling import LossScale
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
    augment: Augment | None
    scale: LossScale | None  # None: gradients are as wide as weights
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
        self._keys = torch.zeros(self.room, members, dtype=torch.long, device=device)
        self._keys_here = torch.zeros(self.room, members, dtype=torch.long)
        # what the host decides in every step is brought to where the step reads it
        self._brings = self.augment is not None and self.augment.decides_on_host
        self._right = torch.zeros(members, dtype=torch.float64, device=device)

    def run(
        self, examples: torch.Tensor, rates: torch.Tensor, shares: torch.Tensor | None, keys: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """([step, member] losses before each update, [member] right answers) of these steps. `shares`: of
        the weights after them in the averages; `keys`: `[step, member]`, of random numbers."""
        count = len(examples)
        self._examples[:count].copy_(examples)
        self._rates[:count].copy_(rates)
        if shares is not None:
            self._shares[:count].copy_(shares)
        self._keys[:count].copy_(keys)
        self._keys_here[:count].copy_(keys)
        if self._brings:
            self._bring(0)
        plain = self._at.device.type != "cuda" or self.config.cuda_graph is False
        step = self._step if plain else self._recorded()
        self._at.zero_()
        self._right.zero_()
        for place in range(count):
            if self._brings and place:
                self._bring(place)
            step()
        return self._losses[:count].clone(), self._right.clone()

    def _step(self) -> None:
        draws = self.augment is not None or self.stack.draws
        keys = self._keys.index_select(0, self._at)[0] if draws else self._keys[0]
        if self._brings:
            x, y = self._x, self._y
        else:
            x, y = self.batch(self._examples.index_select(0, self._at)[0], Chance(keys))
        each, right, gradients = self._gradients(x, y, keys)
        self._update(gradients, self._rates.index_select(0, self._at)[0])
        weights = self.stack.tensors
        if self.averages is not None:
            self.averages.update(weights, self._shares.index_select(0, self._at)[0])
        self._losses.index_copy_(0, self._at, each.detach()[None])
        self._right += right
        self._at += 1

    def batch(self, examples: torch.Tensor, chance: Chance) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets as a step sees them."""
        x, y = self.batches.take(examples)
        if self.prepare is not None:
            x = self.prepare(x)
        if self.augment is None:
            return x, y
        if not self.batches.shared:
            return self.augment.changed(x, y, chance)
        x, y = self.augment.changed(x[None], y[None], chance.first)
        return x[0], y[0]

    def _bring(self, place: int) -> None:
        x, y = self.batch(self._examples[place], Chance(self._keys[place], self._keys_here[place]))
        if place == 0 and not hasattr(self, "_x"):
            self._x, self._y = x.clone(), y.clone()
        self._x.copy_(x)
        self._y.copy_(y)

    def _update(self, gradients: Sequence[torch.Tensor], rates: torch.Tensor) -> None:
        """With a scale, members whose gradients overflow stay as they are."""
        skips: AbstractContextManager[None] = nullcontext()
        if self.scale is not None:
            gradients, bad = self.scale.unscaled(gradients)
            skips = self.scale.skipping(bad, self._moved())
        if self.clips is not None:
            clip(gradients, self.clips)
        with skips:
            self.optimizer.step(self.stack.parameters, gradients, rates)

    def _moved(self) -> Iterator[torch.Tensor]:
        """Tensors that the optimiser changes."""
        yield from (*self.stack.parameters.values(), self.optimizer.count)
        for slot in self.optimizer.slots.values():
            yield from slot.values()

    def _gradients(self, x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor) -> Gradients:
        """Gradients of a batch. It goes through in as many pieces as the config says; each piece weighs as
        much as it has examples."""
        pieces = self.batches.pieces(x, y, self.config.grad_accum_steps)
        whole = self.batches.size(y)
        each, right, sums = self._piece(*pieces[0], whole, self.stack.keyed(keys, 0))
        for number, piece in enumerate(pieces[1:], 1):
            losses, good, tensors = self._piece(*piece, whole, self.stack.keyed(keys, number))
            each, right = each + losses, right + good
            sums = [a + b for a, b in zip(sums, tensors, strict=True)]
        return each, right, sums

    def _piece(
        self, x: torch.Tensor, y: torch.Tensor, whole: int, weights: Mapping[str, torch.Tensor]
    ) -> Gradients:
        size = self.batches.size(y)
        with autocast(self.config, x.device):
            out = self.stack(x, weights, shared=self.batches.shared, training=True)
            each, right = judge(out, self._everybodys(y), self.config, self.smoothing)
        if size != whole:
            each = each * (size / whole)
        summed = each.sum() if self.scale is None else (each * self.scale.scale).sum()
        gradients = torch.autograd.grad(summed, list(self.stack.parameters.values()))
        return each.detach(), right, gradients

    def rehearse(self, x: torch.Tensor, y: torch.Tensor, keys: torch.Tensor, classes: int) -> None:
        """There and back, with nothing changed; Apart's one line if the outputs are too few."""
        given = self.stack.keyed(keys, 0).items()
        weights = {name: tensor if tensor.requires_grad else tensor.clone() for name, tensor in given}
        with autocast(self.config, x.device):
            out = self.stack(x, weights, shared=self.batches.shared, training=True)
            if out.shape[-1] < classes:
                raise Apart(f"{out.shape[-1]} outputs are too few for {classes} classes")
            each, _ = judge(out, self._everybodys(y), self.config, self.smoothing)
        torch.autograd.grad(each.sum(), list(self.stack.parameters.values()))

    def _everybodys(self, y: torch.Tensor) -> torch.Tensor:
        """Shares of classes are given for each member."""
        soft = self.augment is not None and self.augment.softens
        return y.expand(len(self.stack), *y.shape) if soft and self.batches.shared else y

    def _recorded(self) -> Callable[[], None]:
        if self._replay is None:
            self._replay, _ = record(self._step, self._changed, ready=self._at.zero_)
        return self._replay

    def _changed(self) -> Iterator[torch.Tensor]:
        yield from (*self.stack.buffers.values(), *self._moved())
        yield from self.scale.tensors if self.scale is not None else ()
        yield from self.averages.tensors.values() if self.averages is not None else ()
