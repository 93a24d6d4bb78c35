"""The loss of each member, and how many of its answers are right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from hostler.train.config import CLASSES, Config
from hostler.train.step import TYPES


def autocast(config: Config, device: torch.device) -> torch.autocast:
    """In what precision a group computes, as its config says."""
    return torch.autocast(device.type, TYPES.get(config.amp or ""), enabled=config.amp is not None)


Smoothing = float | torch.Tensor  # everybody's, or one for each member


def smoothing(configs: Sequence[Config], device: torch.device) -> Smoothing:
    """How far the labels of these members are smoothed."""
    each = [config.label_smoothing for config in configs]
    return each[0] if len(set(each)) == 1 else torch.tensor(each, device=device)


def judge(
    out: torch.Tensor, target: torch.Tensor, config: Config, smoothed: Smoothing
) -> tuple[torch.Tensor, torch.Tensor]:
    """(`[member]` losses, each a mean over the batch; `[member]` right answers) of outputs
    `[member, batch, …]`; targets `[batch]` are everybody's, shares of classes `[member, batch, class]`."""
    if config.loss in CLASSES:
        return _classes(out, target, smoothed)
    members = len(out)
    tensor = target if target.ndim > 1 else target.expand(members, *target.shape)
    rows = tensor if tensor.is_floating_point() else F.one_hot(tensor, out.shape[-1])
    losses = (out.float() - rows.reshape(out.shape).float()).square().flatten(1).mean(1)
    if target.ndim == 3:
        return losses, (out.argmax(-1) == target.argmax(-1)).sum(-1)
    if target.is_floating_point():  # none is right or wrong
        return losses, torch.full((members,), float("nan"), device=out.device)
    return losses, (out.argmax(-1) == target).sum(-1)


def _classes(
    out: torch.Tensor, target: torch.Tensor, smoothed: Smoothing
) -> tuple[torch.Tensor, torch.Tensor]:
    """With classes in the first dimension: few of them, and many answers, go through in wide strides."""
    members, batch, classes = out.shape
    if target.ndim == 3:
        return _shares(out, target, smoothed)
    tensor = (target.T if target.ndim == 2 else target[:, None].expand(batch, members)).reshape(1, -1)
    first = out.permute(2, 1, 0).reshape(1, classes, -1).float()
    if isinstance(smoothed, torch.Tensor):
        logs = first.log_softmax(1)
        each = smoothed.expand(batch, members).reshape(1, -1)
        hard = F.nll_loss(logs, tensor, reduction="none")
        losses = (1 - each) * hard - each / classes * logs.sum(1)
    else:
        losses = F.cross_entropy(first, tensor, reduction="none", label_smoothing=smoothed)
    right = first.detach().max(1).indices == tensor  # as argmax has it, and on a CPU several times as fast
    return losses.view(batch, members).mean(0), right.view(batch, members).sum(0, dtype=torch.float32)


def _shares(
    out: torch.Tensor, target: torch.Tensor, smoothed: Smoothing
) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses of targets that are mixtures of classes."""
    part = smoothed[:, None, None] if isinstance(smoothed, torch.Tensor) else smoothed
    tensor = target * (1 - part) + part / out.shape[-1]
    losses = -(tensor * out.float().log_softmax(-1)).sum(-1).mean(-1)
    return losses, (out.argmax(-1) == target.argmax(-1)).sum(-1)
