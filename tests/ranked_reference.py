"""The small training of several ranks, and its weights by a loop that is written down plainly."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from hostler.train.config import Config
from hostler.train.data import synthetic
from hostler.train.data.order import ExampleOrder

# 41 examples in batches of 8: the last one has a single example, and rank 1 none of it
CONFIG: dict[str, Any] = {
    "dataset": "synthetic/6_3_41", "model": "linear", "batch_size": 8, "base_lr": 0.1, "momentum": 0.9,
    "train_length": 3, "seed_model": 1, "seed_training": 2, "device": "cpu", "checkpoint_every": "2 steps",
    "lr_schedule": "cosine", "log_interval": 5,
}  # fmt: skip


def reference(ranks: int) -> dict[str, torch.Tensor]:
    """The same training in one process, written down plainly."""
    data = synthetic.load(Config(dataset="synthetic/6_3_41"), "6_3_41").splits["train"]
    order = ExampleOrder(41, 8, 2)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    total = 3 * order.steps
    for step in range(total):
        chosen = order.at(step)
        sums = [torch.zeros_like(one) for one in model.parameters()]
        for rank in range(ranks):
            mine = chosen[rank::ranks]
            if not len(mine):
                continue
            x, y = torch.stack([data[i][0] for i in mine]), torch.stack([data[i][1] for i in mine])
            loss = F.cross_entropy(model(x), y) * (len(mine) * ranks / len(chosen))
            for held, found in zip(sums, torch.autograd.grad(loss, list(model.parameters())), strict=True):
                held += found / ranks
        for one, held in zip(model.parameters(), sums, strict=True):
            one.grad = held
        optimizer.param_groups[0]["lr"] = (
            0.1 * (1 + torch.cos(torch.tensor(torch.pi * step / total, dtype=torch.float64)).item()) / 2
        )
        optimizer.step()
    return {name: value.detach() for name, value in model.state_dict().items()}
