"""The loss of each member, and how many of its answers are right."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from hostler.train.config import Config


def losses(out: torch.Tensor, target: torch.Tensor, config: Config) -> torch.Tensor:
    """`[member]`, each a mean over the batch; targets `[batch]` are everybody's."""
    wanted = target if target.ndim == 2 else target.expand(len(out), *target.shape)
    if config.loss in ("log", "cross_entropy"):
        logs = F.log_softmax(out.float(), -1)
        chosen = -logs.gather(-1, wanted[..., None])[..., 0].mean(1)
        if not config.label_smoothing:
            return chosen
        return (1 - config.label_smoothing) * chosen - config.label_smoothing * logs.mean((1, 2))
    rows = wanted if wanted.is_floating_point() else F.one_hot(wanted, out.shape[-1])
    return (out.float() - rows.reshape(out.shape).float()).square().flatten(1).mean(1)


def correct(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """`[member]`; of real-valued targets none is right or wrong."""
    if target.is_floating_point():
        return torch.full((len(out),), float("nan"), device=out.device)
    return (out.argmax(-1) == target).sum(-1)
