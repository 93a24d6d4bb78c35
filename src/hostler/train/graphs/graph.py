"""A whole step as one CUDA graph, where batches have one size and nothing of it needs the host.

A smaller batch at the end of a pass goes through as always. Where nobody asked for a recording, a step that
is not known to be the same each time is tried first; one that cannot be recorded goes on as it is, and a line
says why.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch

from hostler.errors import SpecError
from hostler.train import custom, memory
from hostler.train.config import Config
from hostler.train.custom import is_place
from hostler.train.graphs import effects
from hostler.train.graphs.recording import WARM, StateBefore, differ, record, unsynchronised
from hostler.train.models.registry import is_own

# modes of torch.compile that record graphs → the same without
WITHOUT = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
Scores = tuple[torch.Tensor, torch.Tensor]  # mean loss, how many are right
Update = Callable[[torch.Tensor, torch.Tensor], Scores]
PLAIN = 2  # steps before a step that is not known is tried
Batch = tuple[torch.Tensor, torch.Tensor]
Say = Callable[[str], None]


class Unrecordable(Exception):
    """Why a step goes on unrecorded."""


class Graph:
    """`update` is recorded at the first batch of `size`. What it gives is valid until the next call.

    `asked`: what cannot be recorded is an error. `known`: nothing of the step is a user's or a library's, and
    it need not be tried."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        model: torch.nn.Module,
        update: Update,
        size: int,
        *,
        asked: bool = True,
        known: bool = True,
        loss: object = None,
        say: Say = lambda text: None,
    ) -> None:
        self._optimizer, self._model, self._update, self._size = optimizer, model, update, size
        self._asked, self._known, self._loss, self._say = asked, known, loss, say
        self._replay: Callable[[], None] | None = None
        self._form: tuple[object, ...] | None = None  # of the batches that are recorded
        self._plain_steps = 0
        self.busy = self.given_up = False  # being recorded; goes on plain

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> Scores:
        if len(y) != self._size or self.given_up or not self._fits(x, y):
            return self._update(x, y)
        if self._replay is None and self._plain_steps < PLAIN and not self._known and not self._asked:
            return self._looked_at(x, y)
        if self._replay is None and not self._begin(x, y):
            return self._update(x, y)
        return self._replayed(x, y)

    def _looked_at(self, x: torch.Tensor, y: torch.Tensor) -> Scores:
        """Run a first step unrecorded. The very first may compile, and make what stays."""
        self._plain_steps += 1
        why = effects.hooks(self._model)
        if self._plain_steps == 1 and not why:
            return self._update(x, y)
        with effects.EffectWatch(self._model, self._loss) as watch:
            scores = self._update(x, y)
        if why or watch.found:
            self._give_up(Unrecordable(why or watch.found))
        return scores

    def _fits(self, x: torch.Tensor, y: torch.Tensor) -> bool:
        """Whether a batch is like the first; others go through as they are."""
        form = x.shape, x.dtype, y.shape, y.dtype
        if self._form is None:
            self._form = form
        if form == self._form:
            return True
        self._say(
            f"the step is recorded for batches of {_shown(self._form)}: one of {_shown(form)} goes plain"
        )
        self._say = lambda text: None
        return False

    @property
    def is_recorded(self) -> bool:
        return self._replay is not None

    def make_room(self) -> None:
        """Lets go of the recording: memory ran out beside it. Steps go on plain."""
        self._give_up(torch.cuda.OutOfMemoryError("out of memory"))

    @property
    def place(self) -> Batch | None:
        """Where the recorded step reads its batch: one that lies there already is not copied."""
        return (self._x, self._y) if self._replay is not None else None

    def _replayed(self, x: torch.Tensor, y: torch.Tensor) -> Scores:
        assert self._replay is not None
        if x is not self._x:
            self._x.copy_(x, non_blocking=True)
        if y is not self._y:
            self._y.copy_(y, non_blocking=True)
        self._replay()
        return self._scores

    def _begin(self, x: torch.Tensor, y: torch.Tensor) -> bool:
        """Records the step. False if it goes on plain, as it was before."""
        self._buffers, self.busy = list(self._model.buffers()), True
        try:
            self._x, self._y = x.clone(), y.clone()
            if self._known or self._asked:
                self._replay, self._scores = self._recorded()
            else:
                self._try(x, y)
        except (RuntimeError, Unrecordable) as error:
            self._give_up(error)
        finally:
            self.busy = False
        return not self.given_up

    def _try(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """A few steps plain, then recorded; nothing of them stays."""
        before = StateBefore(self._state)
        try:
            plain = self._plain(x, y)
            before.put_back()
            self._replay, self._scores = self._recorded()
            recorded = self._ended([_kept(self._replayed(*batch)) for batch in _turned(x, y)])

            def again() -> list[torch.Tensor]:
                before.put_back()
                return self._plain(x, y)

            if differ(plain, recorded, again):
                raise Unrecordable("recorded steps have other numbers than plain ones")
        finally:
            before.put_back()

    def _plain(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        *some, last = _turned(x, y)
        losses = [_kept(self._update(*batch)) for batch in some]
        with unsynchronised():
            losses += [_kept(self._update(*last))]
        return self._ended(losses)

    def _ended(self, losses: list[torch.Tensor]) -> list[torch.Tensor]:
        return [tensor.detach().to("cpu", copy=True) for tensor in (*losses, *self._state())]

    def _recorded(self) -> tuple[Callable[[], None], Scores]:
        given = record(self._watched, self._state, drop=self._drop)
        if self._moved:
            raise Unrecordable("the model puts another tensor in the place of a buffer")
        self._read = list(self._model.buffers())  # where they are, whatever is put in their place
        return given

    def _watched(self) -> Scores:
        before = list(self._model.buffers())
        scores = self._update(self._x, self._y)
        self._moved = [id(tensor) for tensor in before] != [id(buffer) for buffer in self._model.buffers()]
        return scores

    def _drop(self) -> None:
        """Gradients of the steps before would lie beside those of the recording."""
        self._optimizer.zero_grad(set_to_none=True)

    def _give_up(self, error: RuntimeError | Unrecordable) -> None:
        """What is wrong with the step itself, the plain step that follows will say."""
        full = isinstance(error, RuntimeError) and memory.ran_out(error)
        if self._asked and isinstance(error, RuntimeError) and not full and not _is_of_recording(error):
            raise error
        why = "it does not fit in the device's memory" if full else _words(error)
        if self._asked and not full:
            raise _refusal(why) from error
        self.given_up, self._replay = True, None
        self._x = self._y = torch.empty(0)
        self.__dict__.pop("_scores", None)
        error.__traceback__ = error.__context__ = None  # frames that hold what was to be recorded
        self._drop()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._say(f"goes on with plain steps; the step is not recorded as a CUDA graph: {why}")

    def _state(self) -> Iterable[torch.Tensor]:
        """A buffer that the first steps made is what they computed once for all, and stays."""
        yield from self._model.parameters()
        yield from self._buffers
        for slots in self._optimizer.state.values():
            yield from (slot for slot in slots.values() if isinstance(slot, torch.Tensor))


def _turned(x: torch.Tensor, y: torch.Tensor) -> list[Batch]:
    """The same examples at other places, laid out as they were."""
    return [
        (torch.empty_like(x).copy_(x.roll(place, 0)), torch.empty_like(y).copy_(y.roll(place, 0)))
        for place in range(WARM)
    ]


def _kept(scores: Scores) -> torch.Tensor:
    """Scores that the next step leaves alone."""
    return torch.stack([score.detach().double() for score in scores])


def _shown(form: tuple[object, ...]) -> str:
    return "×".join(str(size) for size in form[0])  # type: ignore[attr-defined]


def _is_of_recording(error: RuntimeError) -> bool:
    return any(word in str(error) for word in ("captur", "synchronizing CUDA operation"))


def _words(error: Exception) -> str:
    """The first line of an error, and the user's line that led to it."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "synchronizing CUDA operation" in first:
        first = "it waits for the device"
    line = custom.line_of(error)
    return f"{first} ({line})" if line else first


def _refusal(why: str) -> SpecError:
    return SpecError(f"the step cannot be recorded as a CUDA graph: {why}", hint="cuda_graph: false")


@contextmanager
def lent(optimizer: torch.optim.Optimizer, rate: torch.Tensor) -> Iterator[None]:
    """The optimiser reads its rate from the device, recorded or not, so that both do the same arithmetic;
    what is saved of it are plain numbers."""
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
    """Whether steps are recorded: as asked for, or where that is sure or tried to change nothing but the
    speed."""
    against = _against(config, device, ranks)
    if config.cuda_graph and against:
        raise SpecError(f"cuda_graph: true, but {against}", hint="leave it out, or cuda_graph: false")
    if config.cuda_graph is not None:
        return config.cuda_graph
    return not against and (bool(config.compile) or is_known(config))


def is_known(config: Config) -> bool:
    """Whether nothing in a step is a user's or a library's, which may do things in Python, each step anew."""
    return is_own(config.model) and not is_place(config.model) and not is_place(config.loss)


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
