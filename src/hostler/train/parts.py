"""Builds the parts of a training from its config: data, model, optimiser, schedule, average."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

import torch

from hostler import env
from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.train import custom, loss, memory, newest, optimizer, schedule, span
from hostler.train.config import Config
from hostler.train.data import ahead, augment, sources
from hostler.train.data.feed import AheadFeed, ArrayFeed, LoaderFeed
from hostler.train.data.order import ExampleOrder, mixed, shuffled
from hostler.train.data.split import IMAGES, Arrays, Data, Gathered, Items
from hostler.train.graphs import graph
from hostler.train.models import registry
from hostler.train.ranks import TrainRanks
from hostler.train.span import StepSpan
from hostler.train.step import Step


# An average of the weights along the way, in which the newest counts as `newest.py` says.
#
# Integer buffers are copied; weights with two names are averaged once.
class Average:
    """Tracked like a model: its state is the averaged weights and how many were averaged."""

    def __init__(self, name: str, model: torch.nn.Module) -> None:
        self._share = newest.share(name)
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self._count = 0

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        self._count += 1
        weight = self._share(self._count)
        mine, theirs = self.model.state_dict(), model.state_dict()
        floats = [n for n, value in _once(mine).items() if value.is_floating_point()]
        torch._foreach_lerp_([mine[n] for n in floats], [theirs[n] for n in floats], weight)
        for name, value in mine.items():
            if not value.is_floating_point():
                value.copy_(theirs[name])

    def state_dict(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self._count = int(state["count"])


def _once(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tied weights by one of their names."""
    names = {(value.data_ptr(), value.shape): name for name, value in state.items()}
    return {name: state[name] for name in names.values()}


ROOM = 0.25  # of the device's free memory that data may take


@dataclass(frozen=True)
class TrainingParts:
    config: Config  # resolved
    device: torch.device
    ranks: TrainRanks
    data: Data
    model: torch.nn.Module  # as it is saved
    step: Step
    optimizer: torch.optim.Optimizer
    average: Average | None
    rate: Callable[[int], float]
    span: StepSpan
    order: ExampleOrder
    feed: ArrayFeed | AheadFeed | LoaderFeed
    augment: augment.Augment

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        plain = self.data.prepare is None and not self.config.augment
        x, y = self.feed.at(step, self.step.place if plain else None)
        if self.data.prepare is not None:
            x = self.data.prepare(x)
        return self.augment(x, y, step, self.ranks.rank)


def assemble(config: Config, device: torch.device, ranks: TrainRanks) -> TrainingParts:
    """Seeds must be set in the config by now."""
    augment.check(config.augment)
    data = data_of(config, device)
    augment.check_kind(config.augment, data)
    config = resolved(config, data, device)
    seed(config.seed_model)
    model = registry.build(config, data).to(device)
    if config.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    _check_output(model, data, config, device)
    order = _order(data.splits["train"], config)
    length = span.of(config, order.steps)
    factor = schedule.factor(config.lr_schedule, length.total, config.warmup_steps)
    made = optimizer.build(config, model)
    average = Average(config.averaging, model) if config.averaging else None
    trained = ranks.wrap(model, device, config)
    unrecorded = None
    if config.compile:
        recorded, bare = graph.wanted(config, device, ranks.count), trained
        trained = _compiled(bare, config.compile, recorded=recorded)
        if recorded and config.compile in graph.WITHOUT:
            unrecorded = _compiled(bare, config.compile, recorded=False)
    seed(mixed(_whole(config.seed_training), ranks.rank) if ranks.rank else config.seed_training)
    return TrainingParts(
        config=config,
        device=device,
        ranks=ranks,
        data=data,
        model=model,
        step=Step(
            config, model, trained, made, loss.build(config), device, ranks=ranks.count, unrecorded=unrecorded
        ),
        optimizer=made,
        average=average,
        rate=lambda step: config.base_lr * factor(step),
        span=length,
        order=order,
        feed=_feed(data, order, ranks, device, config, length.total),
        augment=augment.Augment(
            config.augment,
            _whole(config.seed_training),
            config.model_output_dim or data.n_classes,
            data.pixels,
        ),
    )


def data_of(config: Config, device: torch.device) -> Data:
    """As the config names it, checked, on the device where it fits."""
    return _placed(applied(_checked(sources.load(config), config), config), config, device)


def _order(train: Arrays | Items, config: Config) -> ExampleOrder:
    shuffle = train.shuffled if isinstance(train, Gathered) else shuffled
    return ExampleOrder(len(train), config.batch_size, order_seed(config), shuffle)


def order_seed(config: Config) -> int:
    """Seed of the order of the examples."""
    return _whole(config.seed_training if config.seed_order is None else config.seed_order)


def _checked(data: Data, config: Config) -> Data:
    """Checks data of any origin: a user's function may skip the checks of our sources."""
    if "train" not in data.splits:
        raise SpecError(
            f"{config.dataset} has no split train", hint=f"it has {', '.join(data.splits) or 'none'}"
        )
    for name, split in data.splits.items():
        if not len(split):
            raise SpecError(f"split {name!r} of {config.dataset} has no examples")
        if data.n_classes and isinstance(split, (Arrays, Gathered)):
            y = split.y if isinstance(split, Arrays) else split.targets
            _check_targets(name, y, data.n_classes, config)
    return data


def _check_targets(name: str, y: torch.Tensor, classes: int, config: Config) -> None:
    if y.is_floating_point():
        return
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        raise SpecError(
            f"split {name!r} of {config.dataset} has classes from {low} to {high}",
            hint=f"{classes} classes are numbered from 0 to {classes - 1}",
        )


def _compiled(model: torch.nn.Module, how: bool | str, *, recorded: bool) -> torch.nn.Module:
    """`recorded`: the whole step becomes a graph, and so the compiler makes none of its parts."""
    mode = how if isinstance(how, str) else "default"
    try:
        made: torch.nn.Module = torch.compile(model, mode=graph.WITHOUT.get(mode, mode) if recorded else mode)  # type: ignore[assignment]
    except RuntimeError as error:
        raise SpecError(f"compile: {how}: {str(error).splitlines()[0]}", hint="compile: true") from None
    return made


def _whole(seed: int | None) -> int:
    return 0 if seed is None else seed


def seed(value: int | None) -> None:
    if value is None:
        return
    random.seed(value)
    torch.manual_seed(value)
    try:
        import numpy as np
    except ImportError:
        return
    np.random.seed(value % 2**32)


def _placed(data: Data, config: Config, device: torch.device) -> Data:
    """Small sets lie on the device."""
    if config.data_on_device is False or device.type == "cpu":
        return data
    arrays = [one for one in data.splits.values() if isinstance(one, Arrays) or _may_be_held(one, config)]
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
    if config.data_on_device is None and sum(array.bytes for array in arrays) > ROOM * free:
        return data
    last = config.channels_last and data.kind == IMAGES
    splits: dict[str, Arrays | Items] = {}
    for name, one in data.splits.items():
        whole = ahead.held(one, device, config.num_workers) if _may_be_held(one, config) else one
        splits[name] = whole.to(device, channels_last=last) if isinstance(whole, Arrays) else whole
    return replace(data, splits=splits)


def _may_be_held(split: Arrays | Items, config: Config) -> TypeGuard[Gathered]:
    return isinstance(split, Gathered) and (split.quick or config.data_on_device is True)


def resolved(config: Config, data: Data, device: torch.device) -> Config:
    return config.but(
        device=str(device),
        host_name=env.host(),
        data_n_examples={name: len(split) for name, split in data.splits.items()},
        data_n_classes=data.n_classes,
        model_input_shape=config.model_input_shape or data.input_shape,
        model_output_dim=config.model_output_dim or _answers(data),
        eval_batch_size=config.eval_batch_size or config.batch_size,
        batch_size_accum=config.batch_size // config.grad_accum_steps,
    )


def _answers(data: Data) -> int:
    """Outputs that a model needs: one for each class, or for each number of a target."""
    train = data.splits["train"]
    numbers = train.y.shape[1:].numel() if isinstance(train, Arrays) and not data.n_classes else 1
    return data.n_classes or numbers


def _check_output(model: torch.nn.Module, data: Data, config: Config, device: torch.device) -> None:
    """Shapes that do not fit are said before anything is trained."""
    firsts = {name: torch.as_tensor(split[0][0]) for name, split in data.splits.items()}
    for name, first in firsts.items():
        if name == "train" or first.shape != firsts["train"].shape:
            out = _output(model, data, config, torch.stack([first] * 2).to(device))
            _check_width(out, data, config)


def _output(model: torch.nn.Module, data: Data, config: Config, x: torch.Tensor) -> torch.Tensor:
    model.eval()
    try:
        with torch.no_grad():
            out: torch.Tensor = model(data.prepare(x) if data.prepare else x)
            return out
    except (RuntimeError, ValueError, AssertionError, IndexError, TypeError) as error:
        if isinstance(error, RuntimeError) and memory.ran_out(error):
            raise memory.refusal(len(x), 1, 1, None) from None
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SpecError(
            f"{config.model} cannot take inputs of the shape {tuple(x.shape[1:])}: {first}",
            hint="image_size, another model, or another dataset",
        ) from None
    finally:
        model.train()


def _check_width(out: object, data: Data, config: Config) -> None:
    if not isinstance(out, torch.Tensor):
        raise SpecError(f"{config.model} gave {type(out).__name__}", hint="forward returns one torch.Tensor")
    if out.ndim < (2 if data.n_classes else 1):
        raise SpecError(
            f"{config.model} gave the shape {tuple(out.shape)} for two examples",
            hint="forward returns a row of outputs for each",
        )
    if data.n_classes and out.shape[-1] < data.n_classes:
        raise SpecError(
            f"{config.model} has {out.shape[-1]} outputs, but {config.dataset} has {data.n_classes} classes",
            hint=f"model_output_dim: {data.n_classes}",
        )


def _feed(
    data: Data, order: ExampleOrder, ranks: TrainRanks, device: torch.device, config: Config, total: int
) -> ArrayFeed | AheadFeed | LoaderFeed:
    split, total = data.splits["train"], max(total, 1)  # the trial pass takes one where nothing is trained
    if isinstance(split, Arrays):
        return ArrayFeed(split, order, ranks.share, device)
    if isinstance(split, Gathered):
        return AheadFeed(split, order, ranks.share, device, config.num_workers, total)
    return LoaderFeed(split, order, ranks.share, device, config.num_workers, total)


# `transform: file.py:name`: a user's function of each example's input, in training and evaluation alike.
#
# It is called as `name(x, training)`. What it draws at random in training begins from a seed of pass and
# example, like everything that a loader does.


Change = Callable[[Any, bool], Any]


@dataclass(frozen=True)
class Transformed:
    items: Arrays | Items
    change: Change
    training: bool

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        x, y = self.items[index]
        return self.change(x, self.training), y


def applied(data: Data, config: Config) -> Data:
    """The data with the config's transform before all its examples."""
    if config.transform is None:
        return data
    change = custom.find(config.transform, "x", "training")
    if config.num_workers and not all(getattr(one, "forks", True) for one in data.splits.values()):
        raise SpecError(
            f"transform: loader processes cannot read {config.dataset}",
            hint="num_workers: 0, or a copy of the shards in a folder",
        )
    splits = {name: Transformed(one, change, name == "train") for name, one in data.splits.items()}
    first = splits["train"][0][0]
    if not isinstance(first, torch.Tensor):
        raise SpecError(
            f"transform {config.transform} gave {type(first).__name__}", hint="return a torch.Tensor"
        )
    return replace(data, splits=splits, input_shape=tuple(first.shape))
