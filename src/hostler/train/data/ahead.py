"""Batches that threads read while the device has work: so many ahead, in order, none of them twice.

What a thread gathers is a function of the chosen examples alone, so that neither the number of threads nor
their speed changes a batch. An error comes out at the batch that has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import torch

from hostler.train.data.split import Arrays, Gathered

AHEAD = 2  # batches for each thread: one that it reads, and one that waits
_PIECE = 1 << 26  # bytes that are held at a time while a whole split is read

Batch = tuple[torch.Tensor, torch.Tensor]
Chosen = Sequence[int]


def read_ahead(
    split: Gathered, batches: Iterable[Chosen], device: torch.device, threads: int
) -> Generator[Batch, None, None]:
    """A batch on the device for each list of examples. Without threads each is read when it is asked for."""
    rest = iter(batches)
    if not threads:
        for chosen in rest:
            yield _sent(split, _gathered(split, chosen, device), device)
        return
    pool = ThreadPoolExecutor(threads, "read-ahead")
    waiting: deque[Future[Batch]] = deque()
    try:
        for chosen in islice(rest, AHEAD * threads):
            waiting.append(pool.submit(_gathered, split, chosen, device))
        while waiting:
            batch = _sent(split, waiting.popleft().result(), device)
            for chosen in islice(rest, 1):
                waiting.append(pool.submit(_gathered, split, chosen, device))
            yield batch
    finally:
        pool.shutdown(cancel_futures=True)


def held(split: Gathered, device: torch.device, threads: int) -> Arrays:
    """All of a split on the device, read in pieces."""
    x = torch.empty((len(split), *split.shape), dtype=torch.uint8, device=device)
    each = max(1, _PIECE // max(split.bytes // len(split), 1))
    pieces = [range(first, min(first + each, len(split))) for first in range(0, len(split), each)]
    for piece, (found, _) in zip(pieces, read_ahead(split, pieces, device, threads), strict=True):
        x[piece.start : piece.stop] = found
    return Arrays(x, split.targets.to(device))


def _gathered(split: Gathered, chosen: Chosen, device: torch.device) -> Batch:
    y = split.targets[torch.as_tensor(chosen, dtype=torch.long)]
    if device.type != "cuda":
        return split.arrived(split.gather(chosen, device)), y
    with torch.cuda.device(device):  # a thread begins on the first GPU, which may be another rank's
        return split.gather(chosen, device), y.pin_memory()


def _sent(split: Gathered, batch: Batch, device: torch.device) -> Batch:
    x, y = batch
    if device.type != "cuda":
        return x.to(device), y.to(device)
    return split.arrived(x.to(device, non_blocking=True)), y.to(device, non_blocking=True)
