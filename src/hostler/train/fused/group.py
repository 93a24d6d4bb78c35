"""Several trainings carried out together, epoch by epoch, each with rows and weights of its own.

A member leaves at the end of a stretch of steps (its patience ran out, it diverged, somebody stopped it)
and the others go on as if it had never been there.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from hostler.frozen import dataclass
from hostler.train import early, memory, parts, schedule, span
from hostler.train.config import Config
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Arrays, Data
from hostler.train.evaluation import columns, kinds
from hostler.train.fused import alike, averages, batches, losses, optimizer
from hostler.train.fused.alike import Apart
from hostler.train.fused.evaluation import Evaluation, own
from hostler.train.fused.losses import autocast, judge
from hostler.train.fused.stack import ModelStack
from hostler.train.fused.steps import Steps
from hostler.train.graphs import graph
from hostler.train.models import registry
from hostler.train.stats import TIMESTAMP

STRETCH = 2000  # steps between two looks at the losses, at most


@dataclass(frozen=True)
class MemberResults:
    """Results of a member's stretch of steps."""

    member: int
    points: Mapping[int, float]  # step → loss, as often as its config logs
    diverged: str = ""  # why it has to leave


class Group:
    def __init__(
        self, configs: Sequence[Config], device: torch.device, *, shared: bool | None = None
    ) -> None:
        """`shared`: whether members see the same batches; None: where their orders are the same."""
        alike.check(configs)
        first = configs[0]
        graph.wanted(first, device, 1)  # what could not be recorded alone is refused in the same words
        data = parts.data_of(first, device)
        for split in data.splits.values():
            _check(split, first)
        self.device, self.data = device, _on(data, device)
        self.configs = [parts.resolved(config, data, device) for config in configs]
        self.members = list(range(len(configs)))  # who is still there
        models = [_model(config, data) for config in self.configs]
        self._stack, self._one = ModelStack(models, device), models[0]
        self._other: torch.nn.Module | None = None
        self._optimizer = optimizer.build(self.configs, self._stack.parameters)
        self._averages = averages.build(self.configs, self._stack.tensors)
        self._evaluation = Evaluation(self.configs[0], self.data)
        train = self.data.splits["train"]
        assert isinstance(train, Arrays)
        orders = [
            ExampleOrder(len(train), first.batch_size, parts.order_seed(config)) for config in self.configs
        ]
        self._batches = batches.of(train, orders, shared=shared)
        self.order = orders[0]
        self.span = span.of(self.configs[0], self.order.steps)
        self._factors = [
            schedule.factor(config.lr_schedule, self.span.total, config.warmup_steps)
            for config in self.configs
        ]
        self._steps: dict[int, Steps] = {}  # by the size of the batch
        self._clear()

    @property
    def shared(self) -> bool:
        return self._batches.shared

    def columns(self, member: int) -> list[str]:
        """Losses and accuracies of a row."""
        return columns(self.configs[member], self.data)

    def rate(self, member: int, step: int) -> float:
        return self.configs[member].base_lr * self._factors[member](step)

    def rehearse(self) -> None:
        """Sends a batch of each split through all members, and back for the training's: what does not fit is
        found before anything is trained. What a model cannot do for all at once it may do for one, or have
        better words for."""
        try:
            self._rehearse()
        except (RuntimeError, ValueError, AssertionError, IndexError, TypeError, KeyError) as error:
            if isinstance(error, RuntimeError) and memory.ran_out(error):
                raise
            raise Apart((str(error).strip() or type(error).__name__).splitlines()[0]) from None

    def _rehearse(self) -> None:
        size, prepare, stack = len(self.order.at(0)), self.data.prepare, self._stack
        whole = self._batches.take(self._batches.table(0, 1, size)[0])
        x, y = self._batches.pieces(*whole, self.configs[0].grad_accum_steps)[0]
        weights = {**stack.parameters, **{name: one.clone() for name, one in stack.buffers.items()}}
        with autocast(self.configs[0], self.device):
            out = stack(prepare(x) if prepare else x, weights, shared=self.shared, training=True)
        if out.shape[-1] < self.data.n_classes:
            raise Apart(f"{out.shape[-1]} outputs are too few for {self.data.n_classes} classes")
        loss, _ = judge(out, y, self.configs[0], self._smoothing())
        torch.autograd.grad(loss.sum(), list(stack.parameters.values()))
        self._evaluation.rehearse(stack, self._smoothing())

    def model(self, member: int) -> torch.nn.Module:
        """A member's model with its weights, until the next one is asked for."""
        self._one.load_state_dict(self._stack.state(self.members.index(member)))
        return self._one

    def average(self, member: int) -> torch.nn.Module | None:
        """The same of its average; None if it keeps none."""
        if self._averages is None or self.configs[member].averaging is None:
            return None
        if self._other is None:
            self._other = copy.deepcopy(self._one).eval().requires_grad_(False)
        place = self.members.index(member)
        self._other.load_state_dict(self._stack.state(place, self._averages.tensors))
        return self._other

    def _clear(self) -> None:
        self._loss = torch.zeros(len(self.members), dtype=torch.float64, device=self.device)
        self._right = torch.zeros_like(self._loss)
        self._seen, self._began = 0, time.perf_counter()

    def stretch(self, first: int, count: int) -> list[MemberResults]:
        """Trains these steps, all of one epoch; returns each member's results."""
        whole = min(count, self._whole(first), STRETCH)
        if whole < count:
            return [*self.stretch(first, whole), *self.stretch(first + whole, count - whole)]
        size = len(self.order.at(first))
        steps = self._sized(size)
        rates = torch.tensor([self._rates(step) for step in range(first, first + count)])
        shares = self._averages.shares(first, count) if self._averages else None
        found, right = steps.run(self._batches.table(first, count, size), rates, shares)
        self._loss = _added(self._loss, found, size)
        self._right += right
        self._seen += size * count
        return self._told(first, found.T.tolist())

    def _whole(self, first: int) -> int:
        """How many steps from this one on are of one pass and one size: the last batch may be smaller."""
        place = first % self.order.steps
        short = self.order.count % self.order.batch != 0
        return max(self.order.steps - place - short, 1)

    def _rates(self, step: int) -> list[float]:
        return [self.rate(one, step) for one in self.members]

    def _sized(self, size: int) -> Steps:
        if size not in self._steps:
            norms = [self.configs[one].clip_grad_norm for one in self.members]
            clips = [math.inf if norm is None else norm for norm in norms]
            self._steps[size] = Steps(
                self.configs[0],
                self._stack,
                self._optimizer,
                self._averages,
                self._batches,
                torch.tensor(clips, device=self.device) if any(norms) else None,
                self._smoothing(),
                self.data.prepare,
                size,
                min(STRETCH, self.span.each),
            )
        return self._steps[size]

    def _told(self, first: int, found: list[list[float]]) -> list[MemberResults]:
        return [self._of(member, first, row) for member, row in zip(self.members, found, strict=True)]

    def _of(self, member: int, first: int, row: list[float]) -> MemberResults:
        config, points = self.configs[member], dict[int, float]()
        for place, loss in enumerate(row):
            step = first + place + 1
            if step % config.log_interval and step % self.span.each and step != self.span.total:
                continue
            points[step] = loss
            if early.has_diverged(loss, config.max_allowed_loss):
                why = f"the loss is {loss:g} at step {step} (max_allowed_loss {config.max_allowed_loss:g})"
                return MemberResults(member, points, why)
        return MemberResults(member, points)

    def rows(self, epoch: int) -> dict[int, dict[str, float]]:
        """The row of each member at the end of an epoch; the next epoch's begins empty."""
        seen, took = max(self._seen, 1), time.perf_counter() - self._began
        last = self.span.first(epoch) + self.span.steps(epoch)
        loss, right, rates = self._loss.tolist(), self._right.tolist(), self._rates(last - 1)
        tests = self._tests()
        found = {
            member: {
                TIMESTAMP: time.time(),
                "train/loss": loss[place] / seen,
                "train/accuracy": right[place] / seen,
                "train/time": took,
                "train/data_time": 0.0,
                "train/seen_examples": float(self.order.seen(last)),
                "train/learning_rate": rates[place],
                "train/throughput": seen / took,
                **own({name: one[place] for name, one in tests.items()}, self.configs[member]),
            }
            for place, member in enumerate(self.members)
        }
        self._clear()
        return found

    def _tests(self) -> dict[str, list[float]]:
        """Columns of the evaluation: of the weights, the averages, or both."""
        wanted = {which for one in self.members for which in kinds(self.configs[one])}
        sets: dict[str, Mapping[str, torch.Tensor]] = {"last": self._stack.tensors}
        if self._averages is not None:
            sets["av"] = self._averages.tensors
        chosen = {name: sets[name] for name in sets if name in wanted}
        return self._evaluation.columns(self._stack, chosen, self._smoothing())

    def _smoothing(self) -> losses.Smoothing:
        return losses.smoothing([self.configs[one] for one in self.members], self.device)

    def leave(self, *gone: int) -> None:
        """Removes members from the training; steps recorded for the larger group are dropped."""
        places = [place for place, member in enumerate(self.members) if member not in gone]
        self.members = [self.members[place] for place in places]
        if not places:
            return
        chosen = torch.tensor(places, device=self.device)
        self._stack.keep(chosen)
        self._optimizer.keep(chosen)
        if self._averages is not None:
            self._averages.keep(places)
        self._batches = self._batches.keep(places)
        self._loss, self._right = self._loss[chosen], self._right[chosen]
        self._steps = {}

    def state(self, member: int) -> dict[str, Any]:
        """All that the next step of one member depends on."""
        place = self.members.index(member)
        found = {
            "model": self._stack.state(place),
            "optimizer": optimizer.state_of(self._optimizer, place),
            "sums": (self._loss[place].clone(), self._right[place].clone(), self._seen),
        }
        if self._averages is not None and self.configs[member].averaging is not None:
            found["average"] = self._stack.state(place, self._averages.tensors)
        return found

    def load(self, member: int, state: Mapping[str, Any]) -> None:
        place = self.members.index(member)
        self._stack.load(place, state["model"])
        optimizer.load_state(self._optimizer, place, state["optimizer"])
        loss, right, self._seen = state["sums"]
        self._loss[place], self._right[place] = loss, right
        if self._averages is not None and "average" in state:
            self._stack.load(place, state["average"], self._averages.tensors)


def _added(sums: torch.Tensor, found: torch.Tensor, size: int) -> torch.Tensor:
    """Adds step after step, on the host: the same to the bit however the steps were cut."""
    each = torch.cat([sums.cpu()[None], found.cpu().double() * size])
    return each.cumsum(0)[-1].to(sums.device)


def _model(config: Config, data: Data) -> torch.nn.Module:
    parts.seed(config.seed_model)
    return registry.build(config, data)


def _check(split: object, config: Config) -> None:
    if not isinstance(split, Arrays):
        why = "is loaded example by example"
    elif split.y.ndim > 1:
        why = "has several answers to an example"
    else:
        return
    raise Apart(f"{config.dataset} {why}")


def _on(data: Data, device: torch.device) -> Data:
    """All of it, on the device: a step must not wait for the host."""
    splits = {name: one.to(device) if isinstance(one, Arrays) else one for name, one in data.splits.items()}
    return replace(data, splits=splits)
