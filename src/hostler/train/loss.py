"""The loss of a batch and how many of it are right. Soft targets (mixup) are rows of probabilities."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from hostler.errors import SpecError
from hostler.train import custom
from hostler.train.config import CLASSES, Config

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def build(config: Config) -> Loss:
    """Mean over the batch."""
    if custom.is_place(config.loss):
        return _own(config)
    return named(config.loss, config.label_smoothing)


def named(name: str, smoothing: float = 0.0) -> Loss:
    """`log` is cross-entropy; `mse` takes classes as rows with a single one."""
    if name in CLASSES:

        def cross_entropy(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            _check_classes(out, target)
            if out.ndim == 3:  # a class for each place of a text
                out, target = out.flatten(0, 1), target.flatten()
            return F.cross_entropy(out.float(), target, label_smoothing=smoothing)

        return cross_entropy

    def square(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        tensor = target if target.is_floating_point() else F.one_hot(target, out.shape[-1])
        if tensor.numel() != out.numel():
            raise SpecError(
                f"an example's output is {tuple(out.shape[1:])}, but its target {tuple(tensor.shape[1:])}",
                hint="model_output_dim: as many as a target has numbers",
            )
        return F.mse_loss(out.float(), tensor.reshape(out.shape).float())

    return square


def correct(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """How many rows have the largest output at their class; of real-valued targets none is right or wrong."""
    if target.is_floating_point():
        if target.ndim != out.ndim or out.shape[-1] == 1:
            return torch.full((), float("nan"), device=out.device)
        target = target.argmax(-1)
    return (out.argmax(-1) == target).sum()


def count(target: torch.Tensor) -> int:
    """How many answers a batch asks for."""
    return len(target) if target.is_floating_point() else target.numel()


def _own(config: Config) -> Loss:
    """A user's: a function of outputs and targets, or a class that is made with the config."""
    found = custom.find(config.loss)
    custom.check_call(
        config.loss, found, *(("config",) if isinstance(found, type) else ("outputs", "targets"))
    )
    loss: Loss = found(config) if isinstance(found, type) else found

    def checked(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        value = loss(out, target)
        if not isinstance(value, torch.Tensor) or value.ndim:
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise SpecError(
                f"loss {config.loss} gave {shape}", hint="return one number: the mean of the batch"
            )
        return value

    return checked


def _check_classes(out: torch.Tensor, target: torch.Tensor) -> None:
    if target.is_floating_point() and target.shape != out.shape:
        raise SpecError(
            "loss: log needs classes, but the targets are real numbers", hint="loss: mse, for regression"
        )
