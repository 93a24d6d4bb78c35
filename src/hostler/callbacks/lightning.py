"""Lightning: saves its own checkpoint after each epoch, and the random states it leaves out.

    callback = HostlerCallback(run)
    Trainer(…, callbacks=[callback]).fit(model, data, ckpt_path=callback.checkpoint)

After a stop request it leaves at the end of the batch: the epoch is begun again, exactly as it was, because
Lightning cannot go on in the middle of one with the same data.
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Checkpoint

from hostler.sdk.checkpoint import rng
from hostler.sdk.leaving import Leaving
from hostler.sdk.run import Run

NAME = "lightning.ckpt"


class HostlerCallback(Checkpoint):
    """A checkpoint callback, so that it comes after all others and has their state."""

    def __init__(self, run: Run, every_n_epochs: int = 1) -> None:
        self._run, self._every = run, every_n_epochs
        self._path = run.checkpoint_dir / NAME
        run._survive_kills(NAME, scratch=[f".{NAME}.new"])
        self._random: dict[str, Any] | None = None

    @property
    def checkpoint(self) -> str | None:
        """The value for fit's ckpt_path."""
        return str(self._path) if self._path.exists() else None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first batch is drawn."""
        if self._random is not None:
            put_back(self._random)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._run.should_stop:
            raise Leaving("stop")
        self._log(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log(trainer)
        if (trainer.current_epoch + 1) % self._every == 0:
            beside = self._path.with_name(f".{NAME}.new")
            trainer.save_checkpoint(beside)
            if trainer.is_global_zero:
                beside.replace(self._path)

    def state_dict(self) -> dict[str, Any]:
        return {"random": of_all_ranks(taken())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        random = state_dict["random"]  # of each rank; earlier versions kept that of the first alone
        self._random = random[self._run.rank % len(random)] if isinstance(random, list) else random

    def _log(self, trainer: Any) -> None:
        found = {**trainer.logged_metrics} if trainer.is_global_zero else {}
        numbers = {
            name: float(value) for name, value in found.items() if getattr(value, "numel", lambda: 1)() == 1
        }
        if numbers:
            self._run.log(numbers, step=trainer.global_step)


def of_all_ranks(state: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of all ranks, in their order: Lightning asks each, and keeps what the first one answers."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return [state]
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, state)
    return found


# The shared random states as lists, numbers and tensors: what a library loads without unpickling code.


def taken() -> dict[str, Any]:
    record = dict(rng.snapshot())
    version, numbers, gauss = record["python"]
    record["python"] = [version, list(numbers), gauss]
    if "numpy" in record:
        name, keys, *rest = record["numpy"]
        record["numpy"] = [str(name), [int(key) for key in keys], *map(_plain, rest)]
    return record


def put_back(state: dict[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    record = {**state, "python": (version, tuple(numbers), gauss)}
    if "numpy" in state:
        import numpy

        name, keys, *rest = state["numpy"]
        record["numpy"] = (name, numpy.array(keys, dtype=numpy.uint32), *rest)
    rng.put_back(record)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
