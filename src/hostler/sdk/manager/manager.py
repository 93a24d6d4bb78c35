"""The Manager that clouDL's scripts call, on hostler's runs.

One trial is one run, from its first word to `finished`; the next begins with nothing of it. What a trial
needs to go on exactly is saved: weights, optimiser, schedulers, random states, progress, the best so far,
early stopping. A stop request is met between two epochs, or in `save_progress`: saved, then left.
"""

from __future__ import annotations

import copy
import gc
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hostler.errors import HostlerError, UsageError
from hostler.sdk.checkpoint.best import Best, best_of
from hostler.sdk.manager import adopted
from hostler.sdk.manager.adopted import Adopted

Hyparams = Mapping[str, Any]


class ManagedRun(Protocol):
    """The part of a run that a Manager uses."""

    @property
    def output_dir(self) -> Path: ...

    @property
    def should_stop(self) -> bool: ...

    def track(self, **objects: Any) -> None: ...

    def log(
        self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **metrics: Any
    ) -> None: ...

    def save(self, *, wait: bool = False) -> None: ...

    def _keeps(self, best: Best) -> None: ...

    def _keeps_no(self, metric: str) -> None: ...

    def at_start(self) -> None: ...

    def at_step(self, step: int) -> None: ...

    def finish(self, **summary: Any) -> None: ...

    def close(self, error: BaseException | None = None) -> None: ...


class Trials(Protocol):
    """The source of the trials."""

    @property
    def count(self) -> int: ...

    def left(self) -> Sequence[int]:
        """The numbers of those that are not done."""

    def begin(self, number: int) -> tuple[ManagedRun, Hyparams]:
        """Its run, begun or gone on with, and its parameters as the run has them."""


class Manager:
    """`create_manager` in `hostler.manager` makes one."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._number = -1  # of the trial that was begun last
        self._run: ManagedRun | None = None
        self._hyparams: Hyparams = {}
        self._trial, self._adopted = ManagedTrial(), Adopted(lambda: None)
        self._models: list[Any] = []
        self._began = False  # an epoch was begun in this process

    def hyparam_search(self, run: Callable[..., Any]) -> None:
        """Call `run(manager)` once for each trial that is not done. It may also take the path of the weights
        to go on from and that of the best ones, each None where there are none.

        Where several trials follow each other, one that fails is recorded and the next begins."""
        failed = []
        left = [self._number] if self._run is not None else self._trials.left()
        for number in left:
            try:
                self._open(number)
                run(*_taken(run, (self, *self._paths())))
                if self._run is not None:
                    self.finished()
            except Exception as error:
                self._close(error)
                if self._trials.count == 1 or isinstance(error, UsageError):
                    raise
                traceback.print_exc()
                failed.append(f"trial {number}: {type(error).__name__}: {error}")
            except BaseException as error:
                self._close(error)
                raise
        if failed:
            raise HostlerError(f"{len(failed)} of {self._trials.count} trials failed: {'; '.join(failed)}")

    def get_hyparams(self) -> dict[str, Any]:
        """The parameters of the current trial."""
        self._current()
        return dict(self._hyparams)

    def get_progress(self) -> dict[str, list[Any]]:
        """Everything added so far in the current trial: key → values."""
        self._current()
        return {key: list(values) for key, values in self._trial.progress.items()}

    def get_cur_max_iter(self) -> tuple[int, int]:
        """The number of the current trial, from 0 on, and how many there are."""
        return max(self._number, 0), self._trials.count

    def set_compare_goal(self, compare: str, goal: str) -> None:
        """Compare trials by this progress; `goal` says whether "max" or "min" is best."""
        run, before = self._current(), self._trial.best
        self._trial.compare(compare, goal)
        if before is not None and self._trial.best is not before:
            run._keeps_no(before.metric)

    def start_epoch(self) -> int:
        """The epoch to begin with: 0, or after a restart the first that is not in the checkpoint."""
        self._current().at_start()
        self._adopted.at_loop()
        return self._trial.start_epoch

    start_epochs = start_epoch

    def add_progress(self, key: str, value: Any) -> None:
        """Note a value. The key "epochs", at the beginning of each epoch, says which one it is."""
        run = self._current()
        if key == EPOCHS:
            self._next_epoch(run, value)
        if self._trial.add(key, value):
            self._keep_best()
        run.log({key: value}, step=len(self._trial.progress[key]) - 1)

    def track_model(self, model: Any) -> None:
        """Save this model's weights with every checkpoint, keep those of the best, and load them now if the
        trial goes on."""
        run = self._current()
        n = len(self._models) + 1
        self._models.append(model)
        self._adopted.add_model(model)
        run.track(**{"model" if n == 1 else f"model_{n}": model})
        self._adopted.at_loop()

    def track(self, **objects: Any) -> None:
        """Save these too: anything with a state_dict, and generators of the script's own."""
        self._current().track(**objects)

    def save_progress(self, params: Weights | None = None, best: Weights | None = None) -> None:
        """The checkpoint, on the disk when this returns. Weights that are not tracked are handed over:
        those of now, and the best."""
        run = self._current()
        given = {"params": params, "best": best}
        self._trial.given.update({name: dict(one) for name, one in given.items() if one is not None})
        if not self._models and "params" not in self._trial.given:
            raise UsageError(
                "save_progress was called without weights",
                hint="track_model(model) first, or save_progress(model.state_dict())",
            )
        if best is not None:
            self._say_kept()
        if run.should_stop:
            run.at_step(self._trial.start_epoch)  # saves, and leaves
        else:
            run.save(wait=True)

    def finished(self, params: Weights | None = None) -> None:
        """The trial is done. Its weights (these, or the best, or those of now) are kept as `params` in the
        run's outputs."""
        run, trial = self._current(), self._trial
        weights = params or trial.best_weights or trial.given.get("best") or trial.given.get("params")
        if weights is None and self._models:
            weights = self._weights()
        if params is not None and trial.best is not None:
            run._keeps_no(trial.best.metric)
        if weights is not None:
            adopted.write(run.output_dir, "params", weights)
        best = {} if trial.best is None or trial.best.value is None else {"best": trial.best.value}
        run.finish(**best)
        self._forget()

    def _next_epoch(self, run: ManagedRun, epoch: Any) -> None:
        """Between two epochs: all that was trained is in the state, and nothing of the next is."""
        self._trial.announce(int(epoch))
        if not self._began:
            self._began = True
            self._adopted.at_loop()
            run.at_start()
        run.at_step(int(epoch))

    def _keep_best(self) -> None:
        if self._models:
            self._trial.keep(self._weights())
            self._say_kept()

    def _say_kept(self) -> None:
        """The run is ranked by the value whose weights are kept."""
        if self._trial.best is not None:
            self._current()._keeps(self._trial.best)

    def _weights(self) -> dict[str, Any]:
        if len(self._models) == 1:
            return dict(self._models[0].state_dict())
        return {
            f"model_{n}.{key}" if n > 1 else f"model.{key}": value
            for n, model in enumerate(self._models, start=1)
            for key, value in model.state_dict().items()
        }

    def _paths(self) -> tuple[str | None, str | None]:
        """Files of what save_progress was handed before the restart."""
        run = self._current()
        folder = run.output_dir.parent / "manager"
        given = self._trial.given
        params, best = (
            str(adopted.write(folder, name, given[name])) if name in given else None
            for name in ("params", "best")
        )
        return params, best

    def _current(self) -> ManagedRun:
        """The run of the current trial; the first one that is left, if none was begun."""
        if self._run is None:
            left = self._trials.left()
            if not left:
                raise UsageError(
                    "all trials are done: no run is open", hint="do this inside hyparam_search(run)"
                )
            self._open(next((n for n in left if n > self._number), left[0]))
        assert self._run is not None
        return self._run

    def _open(self, number: int) -> None:
        if self._run is not None and self._number == number:
            return
        self._number = number
        self._run, self._hyparams = self._trials.begin(number)
        self._trial, self._models, self._began = ManagedTrial(), [], False
        self._adopted = Adopted(lambda: self._trial.worked())
        self._run.track(manager=self._trial, adopted=self._adopted)
        self._adopted.watch()
        if self._trial.best_weights is not None or "best" in self._trial.given:
            self._say_kept()

    def _close(self, error: BaseException) -> None:
        if self._run is not None:
            run = self._run
            self._forget()
            run.close(error)

    def _forget(self) -> None:
        """Nothing of a trial reaches the next, not even through what the collector has not yet taken."""
        self._adopted.close()
        self._run, self._trial, self._models = None, ManagedTrial(), []
        self._adopted = Adopted(lambda: None)
        gc.collect()


def _taken(run: Callable[..., Any], words: tuple[Any, ...]) -> tuple[Any, ...]:
    """As many of the words as the function takes."""
    try:
        kinds = [p.kind for p in inspect.signature(run).parameters.values()]
    except (TypeError, ValueError):
        return words[:1]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return words
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return words[: sum(kind in places for kind in kinds)]


# A Manager's record of one trial: progress, the best so far, the epoch to resume at.
#
# Its whole state is in `state_dict`, so that a restart changes nothing. An epoch counts as trained once
# something happened after it was announced: progress of another kind, or a step of an optimiser.


EPOCHS = "epochs"

Weights = Mapping[str, Any]


class ManagedTrial:
    def __init__(self) -> None:
        self.progress: dict[str, list[Any]] = {}
        self.best: Best | None = None
        self.best_weights: Weights | None = None
        self.given: dict[str, Weights] = {}  # what save_progress was handed: params, best
        self._epoch: int | None = None  # announced last
        self._trained = False

    def compare(self, metric: str, goal: str) -> None:
        """Judge by this metric from now on; what was the best by the same one stays it."""
        new = best_of(metric, goal)
        if self.best is None or (self.best.metric, self.best.goal) != (metric, new.goal):
            self.best, self.best_weights = new, None

    def announce(self, epoch: int) -> None:
        self._epoch, self._trained = epoch, False

    def worked(self) -> None:
        self._trained = True

    def add(self, key: str, value: Any) -> bool:
        """Whether it is the best so far."""
        self.progress.setdefault(key, []).append(value)
        if key != EPOCHS:
            self.worked()
        if self.best is None or key != self.best.metric:
            return False
        after = self.best.after(_number(key, value), len(self.progress[key]) - 1)
        improved, self.best = after is not self.best, after
        return improved

    def keep(self, weights: Weights) -> None:
        """Keep a copy as the best, since the training goes on with the same tensors."""
        self.best_weights = copy.deepcopy(dict(weights))

    @property
    def start_epoch(self) -> int:
        """The epoch to go on with. Where none was ever announced, as many as the least frequent progress."""
        if self._epoch is not None:
            return self._epoch + 1 if self._trained else self._epoch
        return min(map(len, self.progress.values()), default=0)

    def state_dict(self) -> dict[str, Any]:
        best = None if self.best is None else {"metric": self.best.metric, **self.best.state()}
        return {
            "progress": copy.deepcopy(self.progress),
            "best": best,
            "best_weights": self.best_weights,
            "given": dict(self.given),
            "epoch": self._epoch,
            "trained": self._trained,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.progress = {key: list(values) for key, values in state["progress"].items()}
        self.best = Best(**state["best"]) if state["best"] else None
        self.best_weights, self.given = state["best_weights"], dict(state["given"])
        self._epoch, self._trained = state["epoch"], bool(state["trained"])


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{key} is compared, but {type(value).__name__} is not a number", hint="give add_progress a float"
        ) from None
