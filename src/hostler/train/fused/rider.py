"""A run among those that are trained together: its rows, files, checkpoints and end are its own.

Says and writes what the same training alone would (`experiment.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hostler.errors import Diverged, SpecError
from hostler.train import early
from hostler.train.config import Config
from hostler.train.early import WatchedColumns
from hostler.train.folder import RunFolder
from hostler.train.fused import places
from hostler.train.fused.group import Group
from hostler.train.fused.places import GroupPlace, Standing
from hostler.train.identity import inferred
from hostler.train.stats import TIMESTAMP, Stats

if TYPE_CHECKING:
    from hostler.sdk.run import Run

WATCHED = "watched"  # the best of several columns, as a metric
PARTS = ("model", "optimizer", "sums")  # of a row, in checkpoints; and average and scaler, where it has them


class _MemberPart:
    """A part of one row of the group, as a run keeps it. What is loaded waits until the group is as far."""

    def __init__(self, group: Group, number: int, name: str) -> None:
        self._group, self._number, self._name = group, number, name
        self.loaded: Any = None

    def state_dict(self) -> dict[str, Any]:
        return {"state": self._group.state(self._number)[self._name]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.loaded = state["state"]


class Rider:
    """`end` hears how it ended: nothing, or what was raised."""

    def __init__(
        self,
        run: Run,
        config: Config,
        *,
        end: Callable[[BaseException | None], None],
        show: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.run, self.config, self.number = run, config, 0
        self._end, self._show = end, show
        self.standing = Standing(run.step, places.of(run.memory))
        self.step, self.awake = run.step, False  # it sleeps until the group is there
        self.folder = RunFolder(Path(config.output_dir or run.output_dir), config, leads=True)
        self.folder.write("spec.yaml", config)

    def enter(self, group: Group, place: GroupPlace) -> None:
        """It has this place now; what its checkpoint holds is loaded when the group is as far."""
        self._group, self._place, self.number = group, place, place.number
        asked, self.config = self.config, group.configs[place.number]
        self._watched = _watched(self.config, group.columns(place.number))
        self._stats = Stats(self.folder.stats)
        parts = [*PARTS, *(["average"] if self.config.averaging is not None else [])]
        parts += ["scaler"] if self.config.amp == "fp16" else []
        self._parts = {name: _MemberPart(group, self.number, name) for name in parts}
        places.put(self.run.memory, place)
        self.run.track(**self._parts, stats=self._stats)
        if self.config.save_best_checkpoint:
            self.run.keep_best(self._name, self._watched.goal)
        self.folder.write("config.yaml", self.config)
        self.run.chose(**inferred(asked, self.config))

    def sleep(self, step: int) -> None:
        """A sign of life: whoever watches must not take it for one that hangs."""
        self._show(f"waits at step {self.step} for the others, which are at step {step}")

    def wake(self) -> None:
        """The group is where this one was."""
        self.awake = True
        if self._parts["model"].loaded is not None:
            self._group.load(self.number, {name: part.loaded for name, part in self._parts.items()})
            for part in self._parts.values():
                part.loaded = None

    def look(self, points: Mapping[int, float]) -> None:
        """Losses of some steps, by how many were done."""
        total = self._group.span.total
        for step, loss in points.items():
            rate = self._group.rate(self.number, step - 1)
            self.folder.say(
                f"train: step {step} of {total} ({step / total:.1%}), loss {loss:.4g}, rate {rate:.4g}"
            )
            self.run.log({"train/step_loss": loss, "train/learning_rate": rate}, step=step)

    def report(self, row: dict[str, float], epoch: int) -> None:
        """An epoch is done; a loss that runs away ends it here."""
        self._stats.add(row)
        config, best = self.config, self._watched.best_of(row)
        told = {name: value for name, value in row.items() if name != TIMESTAMP}
        if len(self._watched.columns) > 1 and best is not None:
            told[WATCHED] = best[1]
        self.run.log(told, step=self.step)
        for name, loss in row.items():
            if name.endswith("/loss") and not name.startswith("train/"):
                place = name.removesuffix("/loss")
                self.folder.say(f"{place}: loss {loss:.4g}, accuracy {row[f'{place}/accuracy']:.4g}")
        self.folder.say(f"epoch {epoch + 1} of {self._group.span.epochs}: {_said(row, ', ')}")
        self._show(_said(row, "  "))
        for name, value in row.items():
            if name.endswith("/loss") and early.has_diverged(value, config.max_allowed_loss):
                most = f"max_allowed_loss {config.max_allowed_loss:g}"
                raise Diverged(f"the loss is {value:g} after epoch {epoch + 1} ({name}) ({most})")
        if config.save_freq and ((epoch + 1) % config.save_freq == 0 or self.is_done):
            self._save(f"checkpoints/epoch_{epoch + 1:05d}")
        if config.save_best_checkpoint and best is not None and self._watched.is_best(self._stats.rows):
            self.folder.say(f"the best so far: {best[0]} {best[1]:.4g}")
            self.folder.save("checkpoints/best.safetensors", self._model_of(best[0]))

    @property
    def model(self) -> torch.nn.Module:
        return self._group.model(self.number)

    @property
    def average(self) -> torch.nn.Module | None:
        return self._group.average(self.number)

    @property
    def is_done(self) -> bool:
        return self.step >= self._group.span.total

    @property
    def ran_out(self) -> bool:
        patience = self.config.early_stopping_patience
        return self._watched.ran_out(self._stats.rows, patience)

    def boundary(self) -> None:
        """Between two steps: save and leave, if that was asked for."""
        reason = self.run.asked_to_stop
        if reason is not None:
            places.put(self.run.memory, places.after(reason, self._place))
        self.run.at_step(self.step)

    def finish(self) -> None:
        self.run._reached(self.step)  # the last boundary was a stretch before
        if not self.is_done:
            self.folder.say(f"stopped early: nothing better for {self.config.early_stopping_patience} epochs")
            self.run._ends_early()
        self._save("model")
        self.folder.done(self._stats.rows[-1] if self._stats.rows else {})
        self.end(None)

    def end(self, error: BaseException | None) -> None:
        if error is not None:
            self.folder.say(f"ended: {error}")
        self.folder.close()
        self._end(error)

    @property
    def _name(self) -> str:
        return self._watched.columns[0] if len(self._watched.columns) == 1 else WATCHED

    def _model_of(self, column: str) -> torch.nn.Module:
        average = self.average if "/av/" in column else None
        return self.model if average is None else average

    def _save(self, name: str) -> None:
        """Weights under this name, and their average beside them."""
        self.folder.save(f"{name}.safetensors", self.model)
        average = self.average
        if average is not None:
            self.folder.save(f"{name}_av.safetensors", average)


def _watched(config: Config, columns: list[str]) -> WatchedColumns:
    watched_columns = early.watched(columns, config.best_checkpoint_metric, config.best_checkpoint_goal)
    if not watched_columns.columns and (config.save_best_checkpoint or config.early_stopping_patience):
        raise SpecError(
            f"best_checkpoint_metric {config.best_checkpoint_metric!r} fits no column",
            hint=", ".join(columns),
        )
    return watched_columns


def _said(row: Mapping[str, float], between: str) -> str:
    shown = (f"{name} {value:.4g}" for name, value in row.items() if name.endswith(("loss", "accuracy")))
    return between.join(shown)
