"""`experiment_generator(config)`: the trainer for programs that want to look at a training between its
epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hostler.api import start
from hostler.errors import MachineError
from hostler.train.config import Config
from hostler.train.configfile import make
from hostler.train.identity import params_of

if TYPE_CHECKING:
    from hostler.train.epoch import Epoch


def experiment_generator(config: Config | Mapping[str, Any], *, name: str | None = None) -> Iterator[Epoch]:
    """Train, and yield each epoch: its row of stats.csv, with the model at hand. Killed, the same call goes
    on where it was."""
    asked = config if isinstance(config, Config) else make(config)
    try:
        from hostler.train.experiment import experiment  # torch, and all that it imports
    except ModuleNotFoundError as error:
        raise MachineError(f"the trainer needs {error.name}", hint="pip install 'hostler[train]'") from None
    with start(params_of(asked), name=name, save_every=asked.checkpoint_every) as run:
        yield from experiment(run, asked)
