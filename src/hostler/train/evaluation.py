"""Loss and accuracy of a model over one split."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from hostler.train.data.feed import in_order
from hostler.train.data.split import Arrays, Items
from hostler.train.loss import count
from hostler.train.meter import Meter
from hostler.train.ranks import Ranks
from hostler.train.step import Step


@torch.no_grad()
def evaluate(
    model: torch.nn.Module,
    split: Arrays | Items,
    step: Step,
    *,
    batch: int,
    device: torch.device,
    workers: int,
    ranks: Ranks,
    prepare: Callable[[torch.Tensor], torch.Tensor] | None,
) -> dict[str, float]:
    was = model.training
    model.eval()
    meter = Meter(device)
    began = waited = time.perf_counter()
    for x, y in in_order(split, batch, device, workers, ranks.share):
        meter.data_time += time.perf_counter() - waited
        if len(y):
            loss, right = step.forward(model, prepare(x) if prepare else x, y)
            meter.add(loss, right, count(y))
        waited = time.perf_counter()
    model.train(was)
    meter.time = time.perf_counter() - began
    return meter.row(ranks)
