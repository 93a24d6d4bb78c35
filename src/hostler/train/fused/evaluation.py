"""Loss and accuracy of each member over each split but the training's; of its average, too."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from hostler.frozen import dataclass
from hostler.train.config import Config
from hostler.train.data.split import Arrays, Data
from hostler.train.evaluation import kinds
from hostler.train.fused.losses import Smoothing, autocast, judge
from hostler.train.fused.stack import ModelStack

Column = list[float]  # a number for each member


@dataclass(frozen=True)
class Evaluation:
    config: Config  # what all members have in common
    data: Data  # on the device

    @torch.no_grad()
    def columns(
        self, stack: ModelStack, sets: Mapping[str, Mapping[str, torch.Tensor]], smoothing: Smoothing
    ) -> dict[str, Column]:
        """`<split>/<which>/<what>` of these sets of weights, by which they are."""
        found: dict[str, Column] = {}
        for name, split in self.splits.items():
            for which, weights in sets.items():
                passed = self._pass(stack, weights, split, len(split), smoothing)
                found.update({f"{name}/{which}/{what}": column for what, column in passed.items()})
        return found

    @torch.no_grad()
    def rehearse(self, stack: ModelStack, smoothing: Smoothing) -> None:
        for split in self.splits.values():
            self._pass(stack, stack.tensors, split, self._size, smoothing)

    @property
    def splits(self) -> dict[str, Arrays]:
        every = self.data.splits.items()
        return {name: one for name, one in every if name != "train" and isinstance(one, Arrays)}

    @property
    def _size(self) -> int:
        return self.config.eval_batch_size or self.config.batch_size

    def _pass(
        self,
        stack: ModelStack,
        weights: Mapping[str, torch.Tensor],
        split: Arrays,
        count: int,
        smoothing: Smoothing,
    ) -> dict[str, Column]:
        """Over the first so many examples."""
        began, prepare = time.perf_counter(), self.data.prepare
        loss = torch.zeros(len(stack), dtype=torch.float64, device=split.x.device)
        right = torch.zeros_like(loss)
        for first in range(0, count, self._size):
            x, y = split.x[first : first + self._size], split.y[first : first + self._size]
            with autocast(self.config, x.device):
                out = stack(prepare(x) if prepare else x, weights, shared=True, training=False)
                some, good = judge(out, y, self.config, smoothing)
            loss += some.double() * len(y)
            right += good
        sums = {"loss": (loss / count).tolist(), "accuracy": (right / count).tolist()}
        took = time.perf_counter() - began
        return {**sums, "time": [took] * len(stack), "data_time": [0.0] * len(stack)}


def own(row: Mapping[str, float], config: Config) -> dict[str, float]:
    """A member's columns of a row in which only some members have an average."""
    kept = kinds(config)
    return {name: value for name, value in row.items() if name.split("/")[-2] in kept}
