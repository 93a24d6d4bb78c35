"""One step of the optimiser: forward, backward in micro-batches, clip, update. No synchronisation with
the device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from hostler.train.config import Config
from hostler.train.loss import Loss, correct
from hostler.train.optimizer import set_rate

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Step:
    def __init__(
        self,
        config: Config,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Loss,
        device: torch.device,
    ) -> None:
        self._model, self._optimizer, self._loss, self._device = model, optimizer, loss, device
        self._type = TYPES.get(config.amp or "")
        self._clip, self.parts = config.clip_grad_norm, config.grad_accum_steps
        self._channels_last = config.channels_last
        self.scaler = torch.amp.GradScaler(device.type, enabled=config.amp == "fp16")
        self._parameters = [one for one in model.parameters() if one.requires_grad]

    def __call__(self, x: torch.Tensor, y: torch.Tensor, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(mean loss, how many are right) before the update."""
        set_rate(self._optimizer, rate)
        self._optimizer.zero_grad(set_to_none=True)
        loss, right = self._backward(x, y)
        if self._clip is not None:
            self.scaler.unscale_(self._optimizer)
            torch.nn.utils.clip_grad_norm_(self._parameters, self._clip)
        self.scaler.step(self._optimizer)
        self.scaler.update()
        return loss, right

    def forward(
        self, model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with self.precision():
            out = model(self.laid_out(x))
            return self._loss(out, y), correct(out, y)

    def precision(self) -> AbstractContextManager[object]:
        return torch.autocast(self._device.type, self._type) if self._type else nullcontext()

    def laid_out(self, x: torch.Tensor) -> torch.Tensor:
        return x.contiguous(memory_format=torch.channels_last) if self._channels_last and x.ndim == 4 else x

    def _backward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.parts == 1:
            loss, right = self.forward(self._model, x, y)
            self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            return loss.detach(), right
        return self._in_parts(x, y)

    def _in_parts(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Each part weighs as much as it has examples: the sum is the whole batch's."""
        total = torch.zeros((), device=self._device)
        right = torch.zeros((), device=self._device)
        pieces = list(zip(x.chunk(self.parts), y.chunk(self.parts), strict=True))
        for place, (some_x, some_y) in enumerate(pieces):
            with self._quiet(last=place == len(pieces) - 1):
                loss, some_right = self.forward(self._model, some_x, some_y)
                share = loss * (len(some_y) / len(y))
                self.scaler.scale(share).backward()  # type: ignore[no-untyped-call]
            total += share.detach()
            right += some_right
        return total, right

    def _quiet(self, *, last: bool) -> AbstractContextManager[object]:
        """Gradients are exchanged between ranks once a step."""
        waits: Callable[[], AbstractContextManager[object]] | None = getattr(self._model, "no_sync", None)
        return nullcontext() if last or waits is None else waits()
