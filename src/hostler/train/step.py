"""A step of the optimiser: forward, backward in micro-batches, clip, update. No synchronisation with
the device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from hostler.train import memory
from hostler.train.config import Config
from hostler.train.custom import is_place
from hostler.train.graphs import graph
from hostler.train.graphs.graph import Graph, Scores, lent
from hostler.train.loss import Loss, correct
from hostler.train.memory import ForwardState, Pieces
from hostler.train.optimizer import set_rate

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Step:
    """`model` is as it is saved, `trained` what is called: compiled, or one of several ranks."""

    def __init__(
        self,
        config: Config,
        model: torch.nn.Module,
        trained: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        device: torch.device,
        *,
        ranks: int = 1,
        unrecorded: torch.nn.Module | None = None,
    ) -> None:
        """`unrecorded`: what is called in the place of `trained` where the step turns out not to be
        recorded."""
        self._config, self._device, self._ranks = config, device, ranks
        self._model, self._trained, self._optimizer, self._loss = model, trained, optimizer, loss
        self._type = TYPES.get(config.amp or "")
        self._halves = config.on_out_of_memory == "halve"
        self.pieces = Pieces(config.grad_accum_steps)
        self.scaler = torch.amp.GradScaler(device.type, enabled=config.amp == "fp16")
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._unrecorded = trained if unrecorded is None else unrecorded
        self.say: Callable[[str], None] = lambda text: None
        ours = device.type == "cuda" and not is_place(config.optim_alg)
        self._rate = torch.zeros((), device=device) if ours else None
        self._graph = self._recorder() if graph.wanted(config, device, ranks) else None

    @property
    def place(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Where a recorded step reads its batch; None as long as nothing is recorded."""
        return self._graph.place if self._graph is not None else None

    def _recorder(self) -> Graph:
        return Graph(
            self._optimizer,
            self._model,
            self._stepped,
            self._config.batch_size,
            asked=self._config.cuda_graph is True,
            known=graph.is_known(self._config),
            loss=self._loss,
            say=lambda text: self.say(text),
        )

    def __call__(self, x: torch.Tensor, y: torch.Tensor, rate: float, weight: float = 1.0) -> Scores:
        """Before the update; valid until the next. `weight`: of this rank's examples, where shares are not
        equal."""
        set_rate(self._optimizer, rate)
        if self._rate is not None:
            self._rate.fill_(rate)
        if self._graph is None:
            return self._stepped(x, y, weight)
        scores = self._graph(x, y)
        if self._graph.given_up:
            self._graph, self._trained = None, self._unrecorded
        return scores

    def _stepped(self, x: torch.Tensor, y: torch.Tensor, weight: float = 1.0) -> Scores:
        """With the rate on the device, where there is one: recorded and plain steps then do the same."""
        with lent(self._optimizer, self._rate) if self._rate is not None else nullcontext():
            return self._update(x, y, weight)

    def _update(self, x: torch.Tensor, y: torch.Tensor, weight: float = 1.0) -> Scores:
        scores = self._gradients(self._called(y), x, y, weight)
        if self._config.clip_grad_norm is not None:
            self.scaler.unscale_(self._optimizer)
            torch.nn.utils.clip_grad_norm_(self._parameters, self._config.clip_grad_norm)
        self.scaler.step(self._optimizer)
        self.scaler.update()
        return scores

    def rehearse(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """There and back without an update, and without the other ranks."""
        self._gradients(self._model, x, y, 1.0)
        self._optimizer.zero_grad(set_to_none=True)

    def scores(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> Scores:
        """Scores of an evaluation batch, in as many pieces as fit."""
        while True:
            try:
                return self._scores(model, x, y, self.pieces.evaluating)
            except RuntimeError as error:
                if not memory.ran_out(error):
                    raise
            if not self._made_room():
                self._fewer_at_once(model, x, y)

    def forward(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> Scores:
        with torch.autocast(self._device.type, self._type) if self._type else nullcontext():
            out = model(self._laid_out(x))
            return self._loss(out, y), correct(out, y)

    def _called(self, y: torch.Tensor) -> torch.nn.Module:
        """The compiled model for whole batches only: a second size would make it slower for both."""
        whole = self._ranks > 1 or len(y) == self._config.batch_size
        return self._trained if whole else self._model

    def _laid_out(self, x: torch.Tensor) -> torch.Tensor:
        last = self._config.channels_last and x.ndim == 4
        return x.contiguous(memory_format=torch.channels_last) if last else x

    def _gradients(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, weight: float) -> Scores:
        """Computes the gradients of the whole batch, in as many pieces as fit."""
        may = self._halves and (model is self._model or self._ranks == 1)
        while True:
            recorded = self._graph is not None and self._graph.is_recorded
            # a plain step beside a recorded one writes to the same gradients: they are there once
            self._optimizer.zero_grad(set_to_none=not recorded)
            busy = self._graph is not None and self._graph.busy
            before = ForwardState(self._model) if may or (recorded and not busy) else None
            try:
                return self._backward(model, x, y, weight)
            except RuntimeError as error:
                if not memory.ran_out(error) or busy:
                    raise
            # out here: nothing holds what the failed try has made
            if before is not None and self._made_room():
                before.put_back()
            else:
                self._smaller(x, y, before)

    def _made_room(self) -> bool:
        """Whether there was a recorded step to let go of."""
        if self._graph is None or not self._graph.is_recorded:
            return False
        self._graph.make_room()
        return True

    def _backward(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, weight: float) -> Scores:
        """Each piece weighs as much as it has examples: the sum is the whole batch's."""
        if self.pieces.training == 1:
            loss, right = self.forward(model, x, y)
            self.scaler.scale(loss if weight == 1.0 else loss * weight).backward()  # type: ignore[no-untyped-call]
            return loss.detach(), right
        total = torch.zeros((), device=self._device)
        right = torch.zeros((), device=self._device)
        pieces = list(zip(x.chunk(self.pieces.training), y.chunk(self.pieces.training), strict=True))
        for place, (some_x, some_y) in enumerate(pieces):
            with _quiet(model, last=place == len(pieces) - 1):
                loss, some_right = self.forward(model, some_x, some_y)
                share = loss * (len(some_y) / len(y))
                self.scaler.scale(share if weight == 1.0 else share * weight).backward()  # type: ignore[no-untyped-call]
            total += share.detach()
            right += some_right
        return total, right

    def _smaller(self, x: torch.Tensor, y: torch.Tensor, before: ForwardState | None) -> None:
        """The same batch in more pieces, where that is allowed and can be; else what would fit is said."""
        batch, pieces = self._config.batch_size, self.pieces
        self._let_go()
        found = memory.more(batch, pieces.training)
        if before is None or found is None:
            fits = memory.fitting(batch, pieces.training, lambda count: self._goes(x, y, count))
            raise memory.refusal(batch, self._ranks, pieces.training, fits)
        before.put_back()
        pieces.training = found
        pieces.on_change(f"out of memory: goes on with grad_accum_steps {found}; the batch stays {batch}")

    def _goes(self, x: torch.Tensor, y: torch.Tensor, count: int) -> bool:
        try:
            self.forward(self._model, x.chunk(count)[0], y.chunk(count)[0])[0].backward()  # type: ignore[no-untyped-call]
            return True
        except ValueError:  # batch norm takes no single example
            pass
        except RuntimeError as error:
            if not memory.ran_out(error):
                raise
        finally:
            self._optimizer.zero_grad(set_to_none=True)
        self._let_go()
        return False

    def _let_go(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _scores(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, pieces: int) -> Scores:
        if pieces == 1:
            return self.forward(model, x, y)
        found = [self.forward(model, a, b) for a, b in zip(x.chunk(pieces), y.chunk(pieces), strict=True)]
        sizes = [len(piece) / len(y) for piece in y.chunk(pieces)]
        losses = [loss * size for (loss, _), size in zip(found, sizes, strict=True)]
        return torch.stack(losses).sum(), torch.stack([right for _, right in found]).sum()

    def _fewer_at_once(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        if self._halves and self.pieces.evaluating < len(y):
            self.pieces.evaluating *= 2
            self.pieces.on_change(f"out of memory: evaluates in {self.pieces.evaluating} pieces")
            return
        raise memory.refusal_of_evaluation(len(y), self._evaluated_at_once(model, x, y))

    def _evaluated_at_once(self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> int | None:
        size = len(y) // 2
        while size:
            try:
                self.forward(model, x[:size], y[:size])
                return size
            except RuntimeError as error:
                if not memory.ran_out(error):
                    raise
            size //= 2
        return None


def _quiet(model: torch.nn.Module, *, last: bool) -> AbstractContextManager[object]:
    """Gradients are exchanged between ranks once a step."""
    waits: Callable[[], AbstractContextManager[object]] | None = getattr(model, "no_sync", None)
    return nullcontext() if last or waits is None else waits()
