"""Loss and accuracy of each model over each split but the training's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import torch

from hostler.train.config import Config
from hostler.train.data.ahead import Batch
from hostler.train.data.feed import in_order
from hostler.train.data.split import Arrays, Data, Items
from hostler.train.loss import count
from hostler.train.parts import TrainingParts
from hostler.train.ranks import TrainRanks

Say = Callable[[str], None]


def evaluated(
    parts: TrainingParts, *, batches: int | None = None, say: Say = lambda text: None
) -> dict[str, float]:
    """`<split>/<model>/<what>` → value. `batches`: of the first ones alone."""
    row: dict[str, float] = {}
    for name, split in parts.data.splits.items():
        for which, model in models(parts) if name != "train" else ():
            found = _Pass(parts, model, f"{name}/{which}", say).over(split, batches)
            row.update({f"{name}/{which}/{what}": value for what, value in found.items()})
    return row


def models(parts: TrainingParts) -> list[tuple[str, torch.nn.Module]]:
    """The models to evaluate: the current weights, and the average."""
    average = parts.average.model if parts.average is not None else parts.model
    found = {"last": parts.model, "av": average}
    return [(which, found[which]) for which in kinds(parts.config)]


def kinds(config: Config) -> list[str]:
    """Which of `last` and `av` a config has evaluated."""
    known = ["last"] if config.averaging is None else ["last", "av"]
    return known if config.evaluate == "both" else [one for one in known if one == config.evaluate]


def columns(config: Config, data: Data) -> list[str]:
    """Losses and accuracies of a row."""
    others = [name for name in data.splits if name != "train"]
    places = ["train", *(f"{name}/{which}" for name in others for which in kinds(config))]
    return [f"{place}/{what}" for place in places for what in ("loss", "accuracy")]


class _Pass:
    """Evaluates a model on a split."""

    def __init__(self, parts: TrainingParts, model: torch.nn.Module, name: str, say: Say) -> None:
        self._parts, self._model, self._name, self._say = parts, model, name, say
        self._meter = ScoreMeter(parts.device)

    @torch.no_grad()
    def over(self, split: Arrays | Items, batches: int | None) -> dict[str, float]:
        model, meter = self._model, self._meter
        was = model.training
        model.eval()
        began = waited = time.perf_counter()
        for number, (x, y) in enumerate(islice(self._loaded(split), batches), 1):
            meter.data_time += time.perf_counter() - waited
            self._add(x, y, number)
            waited = time.perf_counter()
        model.train(was)
        meter.time = time.perf_counter() - began
        row = meter.row(self._parts.ranks)
        self._say(f"{self._name}: loss {row['loss']:.4g}, accuracy {row['accuracy']:.4g}")
        return row

    def _loaded(self, split: Arrays | Items) -> Iterator[Batch]:
        parts, config = self._parts, self._parts.config
        size = config.eval_batch_size or config.batch_size
        return in_order(split, size, parts.device, config.num_workers, parts.ranks.share)

    def _add(self, x: torch.Tensor, y: torch.Tensor, number: int) -> None:
        parts, prepare, every = self._parts, self._parts.data.prepare, self._parts.config.log_interval_eval
        if len(y):
            loss, right = parts.step.scores(self._model, prepare(x) if prepare else x, y)
            self._meter.add(loss, right, count(y))
        if every and number % every == 0:
            self._say(f"{self._name}: {number} batches")


# Sums over an epoch's batches, on the device until somebody asks; kept in checkpoints made in the
# middle of one.


class ScoreMeter:
    """Sums of one rank. A checkpoint of another number of them is scaled to be one of so many: exact
    where they are more by a factor, and else as good as the parts are alike."""

    def __init__(self, device: torch.device, ranks: int = 1) -> None:
        self._ranks, self.moved = ranks, False  # the checkpoint was another number's
        self._loss, self._right = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(2))
        self._seen = 0.0
        self.time = self.data_time = 0.0

    def add(self, loss: torch.Tensor, right: torch.Tensor, count: int) -> None:
        """The loss is a mean over `count` examples. Two operations: small models notice each."""
        self._loss.add_(loss.detach(), alpha=count)
        self._right.add_(right)
        self._seen += count

    def clear(self) -> None:
        self._loss.zero_()
        self._right.zero_()
        self._seen = self.time = self.data_time = 0.0

    def row(self, ranks: TrainRanks) -> dict[str, float]:
        loss, right, seen = ranks.sum(self._sums()).tolist()
        seen = max(seen, 1.0)
        return {"loss": loss / seen, "accuracy": right / seen, "time": self.time, "data_time": self.data_time}

    def state_dict(self) -> dict[str, Any]:
        times = {"time": self.time, "data_time": self.data_time}
        return {"sums": self._sums(), "ranks": self._ranks, **times}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        before = int(state["ranks"])
        self.moved = before != self._ranks
        self._put(state["sums"] * (before / self._ranks))
        self.time, self.data_time = float(state["time"]), float(state["data_time"])

    def _sums(self) -> torch.Tensor:
        tensor = torch.full((), self._seen, dtype=torch.float64, device=self._loss.device)
        return torch.stack([self._loss, self._right, tensor])

    def _put(self, sums: torch.Tensor) -> None:
        self._loss.copy_(sums[0])
        self._right.copy_(sums[1])
        self._seen = float(sums[2])
