"""Several trainings carried out together, epoch by epoch, each with rows and weights of its own.

A member leaves at the end of a stretch of steps (its patience ran out, it diverged, somebody stopped it)
and the others go on as if it had never been there.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from hostler.frozen import dataclass
from hostler.train import early, memory, parts, schedule, span
from hostler.train.config import Config
from hostler.train.data import augment, chance
from hostler.train.data.augment import Augment
from hostler.train.data.chance import Chance
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Arrays, Data
from hostler.train.evaluation import columns, kinds
from hostler.train.fused import alike, averages, batches, losses, optimizer
from hostler.train.fused.alike import Apart
from hostler.train.fused.evaluation import Evaluation, own
from hostler.train.fused.scaling import LossScale
from hostler.train.fused.stack import ModelStack
from hostler.train.fused.steps import Steps
from hostler.train.graphs import graph
from hostler.train.models import registry
from hostler.train.stats import TIMESTAMP

Load = Callable[[Config, torch.device], Data]
STRETCH = 2000  # steps between two looks at the losses, at most


@dataclass(frozen=True)
class MemberResults:
    """Results of a member's stretch of steps."""

    member: int
    points: Mapping[int, float]  # step → loss, as often as its config logs
    diverged: str = ""  # why it has to leave


class Group:
    def __init__(
        self,
        configs: Sequence[Config],
        device: torch.device,
        *,
        shared: bool | None = None,
        data: Load = parts.data_of,
    ) -> None:
        """`shared`: whether members see the same batches; None: where their orders are the same. `data` loads
        what they train on."""
        alike.check(configs)
        first = configs[0]
        graph.wanted(first, device, 1)  # what could not be recorded alone is refused in the same words
        augment.check(first.augment)
        loaded = data(first, device)
        augment.check_kind(first.augment, loaded)
        for split in loaded.splits.values():
            _check(split, first)
        self.device, self.data = device, _on(loaded, device)
        self.configs = [parts.resolved(config, loaded, device) for config in configs]
        self.members = list(range(len(configs)))  # who is still there
        models = [_model(config, loaded) for config in self.configs]
        self._stack, self._one = ModelStack(models, device), models[0]
        self._other: torch.nn.Module | None = None
        self._optimizer = optimizer.build(self.configs, self._stack.parameters)
        self._averages = averages.build(self.configs, self._stack.tensors)
        self._scale = LossScale(len(configs), device) if first.amp == "fp16" else None
        self._augment = _augment(self.configs[0], self.data)
        self._evaluation = Evaluation(self.configs[0], self.data)
        train = self.data.splits["train"]
        assert isinstance(train, Arrays)
        orders = [
            ExampleOrder(len(train), first.batch_size, parts.order_seed(config)) for config in self.configs
        ]
        if self._augment is not None and len({config.seed_training for config in configs}) > 1:
            shared = False  # each changes its examples in its own way
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
        size, stack = len(self.order.at(0)), self._stack
        steps, keys = self._sized(size), self._keys(0, 1)
        drawn = Chance(keys[0].to(self.device), keys[0])
        whole = steps.batch(self._batches.table(0, 1, size)[0], drawn)
        x, y = self._batches.pieces(*whole, self.configs[0].grad_accum_steps)[0]
        steps.rehearse(x, y, keys[0].to(self.device), self.data.n_classes)
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
        rates = self._table_of_rates(first, count)
        shares = self._averages.shares(first, count) if self._averages else None
        examples = self._batches.table(first, count, size)
        tensor, right = steps.run(examples, rates, shares, self._keys(first, count))
        self._loss = _added(self._loss, tensor, size)
        self._right += right
        self._seen += size * count
        return self._told(first, tensor.T.tolist())

    def _whole(self, first: int) -> int:
        """How many steps from this one on are of one pass and one size: the last batch may be smaller."""
        place = first % self.order.steps
        short = self.order.count % self.order.batch != 0
        return max(self.order.steps - place - short, 1)

    def _rates(self, step: int) -> list[float]:
        return [self.rate(member, step) for member in self.members]

    def _table_of_rates(self, first: int, count: int) -> torch.Tensor:
        """`[step, member]`; members of one schedule share its factors."""
        tensors = dict[object, torch.Tensor]()
        rates = list[torch.Tensor]()
        for config, factor in ((self.configs[member], self._factors[member]) for member in self.members):
            key = (config.lr_schedule, config.warmup_steps)
            if key not in tensors:
                steps = range(first, first + count)
                tensors[key] = torch.tensor([factor(step) for step in steps], dtype=torch.float64)
            rates.append(config.base_lr * tensors[key])
        return torch.stack(rates, 1).float()

    def _keys(self, first: int, count: int) -> torch.Tensor:
        """`[step, member]`: what random numbers of these steps begin from."""
        if self._augment is None and not self._stack.draws:
            return torch.zeros(count, len(self.members), dtype=torch.long)
        seeds = [self.configs[member].seed_training or 0 for member in self.members]
        return chance.keys(torch.tensor(seeds), torch.arange(first, first + count))

    def _sized(self, size: int) -> Steps:
        if size not in self._steps:
            norms = [self.configs[member].clip_grad_norm for member in self.members]
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
                self._augment,
                self._scale,
                size,
                min(STRETCH, self.span.each),
            )
        return self._steps[size]

    def _told(self, first: int, found: list[list[float]]) -> list[MemberResults]:
        looked = dict[int, list[int]]()  # places of steps that are logged, by how often that is
        for every in {self.configs[member].log_interval for member in self.members}:
            looked[every] = [n for n in range(len(found[0])) if self._is_logged(first + n + 1, every)]
        return [
            self._of(member, first, row, looked[self.configs[member].log_interval])
            for member, row in zip(self.members, found, strict=True)
        ]

    def _is_logged(self, step: int, every: int) -> bool:
        return not step % every or not step % self.span.each or step == self.span.total

    def _of(self, member: int, first: int, row: list[float], looked: Sequence[int]) -> MemberResults:
        config, points = self.configs[member], dict[int, float]()
        for place in looked:
            step, loss = first + place + 1, row[place]
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
        wanted = {which for member in self.members for which in kinds(self.configs[member])}
        sets: dict[str, Mapping[str, torch.Tensor]] = {"last": self._stack.tensors}
        if self._averages is not None:
            sets["av"] = self._averages.tensors
        chosen = {name: sets[name] for name in sets if name in wanted}
        return self._evaluation.columns(self._stack, chosen, self._smoothing())

    def _smoothing(self) -> losses.Smoothing:
        return losses.smoothing([self.configs[member] for member in self.members], self.device)

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
        if self._scale is not None:
            self._scale.keep(chosen)
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
        if self._scale is not None:
            found["scaler"] = self._scale.state(place)
        return found

    def load(self, member: int, state: Mapping[str, Any]) -> None:
        place = self.members.index(member)
        self._stack.load(place, state["model"])
        optimizer.load_state(self._optimizer, place, state["optimizer"])
        loss, right, self._seen = state["sums"]
        self._loss[place], self._right[place] = loss, right
        if self._averages is not None and "average" in state:
            self._stack.load(place, state["average"], self._averages.tensors)
        if self._scale is not None:
            self._scale.load(place, state["scaler"])


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


def _augment(config: Config, data: Data) -> Augment | None:
    """None where batches are as they are."""
    if not config.augment:
        return None
    return Augment(config.augment, 0, config.model_output_dim or data.n_classes, data.pixels)
