"""A whole step as one CUDA graph, where batches have one size and nothing of it needs the host.

A smaller batch at the end of a pass goes through as always. Rates lie on the device for both kinds, so that
they do the same arithmetic.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from hostler.errors import SpecError
from hostler.sdk.checkpoint import rng
from hostler.train.config import Config
from hostler.train.custom import is_place
from hostler.train.models.registry import is_own

# modes of torch.compile that record graphs → the same without
WITHOUT = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
Scores = tuple[torch.Tensor, torch.Tensor]  # mean loss, how many are right
Update = Callable[[torch.Tensor, torch.Tensor], Scores]


class Graph:
    """`update` is recorded at the first batch of `size`. What it gives is valid until the next call."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, model: torch.nn.Module, update: Update, size: int
    ) -> None:
        self._optimizer, self._model, self._update, self._size = optimizer, model, update, size
        self._rate = torch.zeros((), device=next(model.parameters()).device)
        self._replay: Callable[[], None] | None = None

    def __call__(self, x: torch.Tensor, y: torch.Tensor, rate: float) -> Scores:
        self._rate.fill_(rate)
        if len(y) != self._size:
            return self._stepped(x, y)
        if self._replay is None:
            self._x, self._y = torch.empty_like(x), torch.empty_like(y)
        self._x.copy_(x, non_blocking=True)
        self._y.copy_(y, non_blocking=True)
        if self._replay is None:
            self._replay, self._scores = self._recorded()
        self._replay()
        return self._scores

    def _recorded(self) -> tuple[Callable[[], None], Scores]:
        self._buffers = list(self._model.buffers())
        try:
            found = record(self._watched, self._state)
        except RuntimeError as error:
            if "captur" not in str(error):
                raise
            raise _refusal(str(error).strip().splitlines()[0]) from error
        if self._moved:
            raise _refusal("the model puts another tensor in the place of a buffer")
        self._buffers = list(self._model.buffers())  # it reads them where they are, whatever is put there
        return found

    def _watched(self) -> Scores:
        before = list(self._model.buffers())
        scores = self._stepped(self._x, self._y)
        self._moved = [id(one) for one in before] != [id(one) for one in self._model.buffers()]
        return scores

    def _stepped(self, x: torch.Tensor, y: torch.Tensor) -> Scores:
        with _lent(self._optimizer, self._rate):
            return self._update(x, y)

    def _state(self) -> Iterable[torch.Tensor]:
        """A buffer that the first steps made is what they computed once for all, and stays."""
        yield from self._model.parameters()
        yield from self._buffers
        for slots in self._optimizer.state.values():
            yield from (one for one in slots.values() if isinstance(one, torch.Tensor))


def _refusal(why: str) -> SpecError:
    return SpecError(f"the step cannot be recorded as a CUDA graph: {why}", hint="cuda_graph: false")


@contextmanager
def _lent(optimizer: torch.optim.Optimizer, rate: torch.Tensor) -> Iterator[None]:
    """The optimiser reads its rate from the device; what is saved of it are plain numbers."""
    capturing = torch.cuda.is_current_stream_capturing()
    before = [dict(group) for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = rate
        if "capturable" in group:
            group["capturable"] = capturing
    try:
        yield
    finally:
        for group, old in zip(optimizer.param_groups, before, strict=True):
            group.update(old)


def wanted(config: Config, device: torch.device, ranks: int) -> bool:
    """Whether steps are recorded: as asked for, or where it is sure to change nothing but the speed."""
    against = _against(config, device, ranks)
    if config.cuda_graph and against:
        raise SpecError(f"cuda_graph: true, and {against}", hint="leave it out, or cuda_graph: false")
    if config.cuda_graph is not None:
        return config.cuda_graph
    theirs = is_place(config.model) or is_place(config.loss)  # may do things in Python, each step anew
    return not against and not theirs and (config.compile in WITHOUT or is_own(config.model))


def _against(config: Config, device: torch.device, ranks: int) -> str | None:
    """The reason why a step cannot be recorded; None if it can."""
    if device.type != "cuda":
        return f"the device is {device.type}"
    if ranks > 1:
        return f"{ranks} ranks train together"
    if config.amp == "fp16":
        return "amp: fp16 looks at the gradients after each step"
    if config.on_out_of_memory == "halve":
        return "on_out_of_memory: halve changes the step"
    if is_place(config.optim_alg):
        return f"optim_alg is {config.optim_alg}"
    return None


# Work on a GPU recorded once as a CUDA graph, which the host then replays with a single call.
#
# A recording takes a few steps to warm up; nothing of them stays.


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
