"""The loss of each member, and how many of its answers are right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from hostler.train.config import CLASSES, Config


def autocast(config: Config, device: torch.device) -> torch.autocast:
    """In what precision a group computes, as its config says."""
    return torch.autocast(device.type, torch.bfloat16, enabled=config.amp == "bf16")


Smoothing = float | torch.Tensor  # everybody's, or one for each member


def smoothing(configs: Sequence[Config], device: torch.device) -> Smoothing:
    """How far the labels of these members are smoothed."""
    each = [config.label_smoothing for config in configs]
    return each[0] if len(set(each)) == 1 else torch.tensor(each, device=device)


def judge(
    out: torch.Tensor, target: torch.Tensor, config: Config, smoothed: Smoothing
) -> tuple[torch.Tensor, torch.Tensor]:
    """(`[member]` losses, each a mean over the batch; `[member]` right answers) of outputs
    `[member, batch, …]`; targets `[batch]` are everybody's."""
    if config.loss in CLASSES:
        return _classes(out, target, smoothed)
    members = len(out)
    wanted = target if target.ndim == 2 else target.expand(members, *target.shape)
    rows = wanted if wanted.is_floating_point() else F.one_hot(wanted, out.shape[-1])
    losses = (out.float() - rows.reshape(out.shape).float()).square().flatten(1).mean(1)
    if target.is_floating_point():  # none is right or wrong
        return losses, torch.full((members,), float("nan"), device=out.device)
    return losses, (out.argmax(-1) == target).sum(-1)


def _classes(
    out: torch.Tensor, target: torch.Tensor, smoothed: Smoothing
) -> tuple[torch.Tensor, torch.Tensor]:
    """With classes in the first dimension: few of them, and many answers, go through in wide strides."""
    members, batch, classes = out.shape
    wanted = (target.T if target.ndim == 2 else target[:, None].expand(batch, members)).reshape(1, -1)
    first = out.permute(2, 1, 0).reshape(1, classes, -1).float()
    if isinstance(smoothed, torch.Tensor):
        logs = first.log_softmax(1)
        each = smoothed.expand(batch, members).reshape(1, -1)
        hard = F.nll_loss(logs, wanted, reduction="none")
        losses = (1 - each) * hard - each / classes * logs.sum(1)
    else:
        losses = F.cross_entropy(first, wanted, reduction="none", label_smoothing=smoothed)
    right = first.detach().argmax(1) == wanted
    return losses.view(batch, members).mean(0), right.view(batch, members).sum(0)
