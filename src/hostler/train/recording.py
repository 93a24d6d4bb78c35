"""Work on a GPU recorded once as a CUDA graph, which the host then replays with a single call.

A recording takes a few steps to warm up; nothing of them stays.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from hostler.sdk.checkpoint import rng

WARM = 3  # steps before a recording, which are taken back
T = TypeVar("T")


def record(
    step: Callable[[], T],
    state: Callable[[], Iterable[torch.Tensor]],
    *,
    ready: Callable[[], object] = lambda: None,
) -> tuple[Callable[[], None], T]:
    """How to replay it, and what it gives, which lies at the same place after each replay. `state`: all that
    it changes; what is there only after a first step began as zeros. `ready` goes before what warms up."""
    before = {id(one): one.detach().to("cpu", copy=True) for one in state()}  # where room is
    chance = rng.snapshot()
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM):
            ready()
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with _uncollected(), torch.cuda.graph(graph, capture_error_mode="thread_local"):  # loaders may pin memory
        given = step()
    with torch.no_grad():
        for one in state():
            if id(one) in before:
                one.copy_(before[id(one)])
            else:
                one.zero_()
    rng.put_back(chance)
    return graph.replay, given


@contextmanager
def _uncollected() -> Iterator[None]:
    """An old graph that Python frees in the middle of a recording would spoil it."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
