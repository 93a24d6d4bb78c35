"""Work on a GPU recorded once as a CUDA graph, which the host then replays with a single call.

A recording takes a few steps to warm up; nothing of them stays. All recordings of a process take their memory
from one pool: they are replayed one after another, and nothing of one is read after the next has begun. A
pool ends with the last recording in it; the next one begins another.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from hostler.sdk.checkpoint import rng

WARM = 3  # steps before a recording, which are taken back
FAR = 4.0  # times the distance of two plain trainings that a recorded one may have, where those differ
T = TypeVar("T")
State = Callable[[], Iterable[torch.Tensor]]


class StateBefore:
    """All that steps change, as it was: in host memory, where there is room."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._copies = {id(tensor): (tensor, tensor.detach().to("cpu", copy=True)) for tensor in state()}
        self._chance = rng.snapshot()

    @torch.no_grad()
    def put_back(self) -> None:
        """What is there only after a first step began as zeros."""
        for tensor in self._state():
            if id(tensor) in self._copies:
                tensor.copy_(self._copies[id(tensor)][1])
            else:
                tensor.zero_()
        rng.put_back(self._chance)


def record(
    step: Callable[[], T],
    state: State,
    *,
    ready: Callable[[], object] = lambda: None,
    drop: Callable[[], object] = lambda: None,
) -> tuple[Callable[[], None], T]:
    """How to replay it, and what it gives, which lies at the same place after each replay. `state`: all that
    it changes. `ready` goes before what warms up; `drop` lets go of what the recording makes anew."""
    before = StateBefore(state)
    drop()
    torch.cuda.empty_cache()  # what other streams have kept is of no use to those of a recording
    try:
        _warm_up(step, ready)
        drop()
        _drop_workspaces()
        return _captured(step)
    finally:
        before.put_back()
        _drop_workspaces()


def _warm_up(step: Callable[[], object], ready: Callable[[], object]) -> None:
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for number in range(WARM):
            ready()
            with unsynchronised() if number == WARM - 1 else nullcontext():
                step()
    torch.cuda.current_stream().wait_stream(aside)


def _drop_workspaces() -> None:
    """cuBLAS keeps memory for each stream that it has worked on: what warmed up needs none any more, and a
    recording has its own inside its pool."""
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


@dataclass
class _Pool:
    handle: Any
    graphs: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)  # recorded in it, and still there


_pools: dict[int, _Pool] = {}  # of each device


def _pool(device: int) -> _Pool:
    """The one that lives. torch frees a pool with its last graph, and takes no other into it."""
    if device not in _pools or not _pools[device].graphs:
        _pools[device] = _Pool(torch.cuda.graph_pool_handle())
    return _pools[device]


def _captured(step: Callable[[], T]) -> tuple[Callable[[], None], T]:
    device, stream = torch.cuda.current_device(), torch.cuda.current_stream()
    chance = torch.cuda.default_generators[device]
    spare = chance.clone_state()
    graph = torch.cuda.CUDAGraph()
    with _uncollected():
        pool = _pool(device)
        try:
            # loaders may pin memory meanwhile
            with torch.cuda.graph(graph, pool=pool.handle, capture_error_mode="thread_local"):
                given = step()
        except BaseException:
            _abandon(device, graph, stream, chance, spare)
            raise
        pool.graphs.add(graph)
    return graph.replay, given


def _abandon(device: int, graph: Any, stream: Any, chance: torch.Generator, spare: torch.Generator) -> None:
    """torch leaves a failed recording half open: its stream, its pool and the device's generator."""
    torch.cuda.set_stream(stream)
    pool = _pools.pop(device)
    with suppress(RuntimeError, AttributeError):
        torch._C._cuda_endAllocateToPool(device, pool.handle)
    if not pool.graphs and not _is_whole(graph):  # a whole one gives the pool back itself
        with suppress(RuntimeError, AttributeError):
            torch._C._cuda_releasePool(device, pool.handle)
    chance.graphsafe_set_state(spare)
    with suppress(RuntimeError):  # of what failed, told once more
        torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()


def _is_whole(graph: Any) -> bool:
    """Whether torch has ended the recording, though the step failed in it."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True


@contextmanager
def unsynchronised() -> Iterator[None]:
    """A step that waits for the device raises here, where nothing is half recorded yet."""
    if not torch.cuda.is_available():
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def differ(
    plain: Sequence[torch.Tensor],
    recorded: Sequence[torch.Tensor],
    again: Callable[[], Sequence[torch.Tensor]],
) -> bool:
    """Whether recorded steps end elsewhere than plain ones. Where plain steps done `again` end elsewhere than
    before, recorded ones may end as far away, and a little more."""
    if _same(plain, recorded):
        return False
    tensors = again()
    if len(plain) != len(recorded) or _same(plain, tensors):
        return True
    return not _distance(plain, recorded) <= FAR * _distance(plain, tensors)


def _same(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """To the bit."""
    return len(first) == len(second) and all(
        a.dtype == b.dtype and torch.equal(_bytes(a), _bytes(b)) for a, b in zip(first, second, strict=True)
    )


def _bytes(one: torch.Tensor) -> torch.Tensor:
    return one.detach().cpu().reshape(-1).view(torch.uint8)


def _distance(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> float:
    """Distance of the farthest tensor, as a part of its own length."""
    found = [
        float((a.double() - b.double()).norm() / a.double().norm().clamp_min(1e-30))
        for a, b in zip(first, second, strict=True)
    ]
    return max(found, default=0.0)


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
