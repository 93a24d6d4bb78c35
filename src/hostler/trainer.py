"""The trainer for programs that want to look at a training between its epochs: `experiment_generator(config)`
for one, `together(configs)` for many that differ only in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hostler.api import start
from hostler.errors import MachineError
from hostler.train.config import Config
from hostler.train.configfile import make
from hostler.train.identity import params_of, tags_of, trackers_of

if TYPE_CHECKING:
    from hostler.train.epoch import Epoch
    from hostler.train.fused.together import FusedMember


def experiment_generator(config: Config | Mapping[str, Any], *, name: str | None = None) -> Iterator[Epoch]:
    """Train, and yield each epoch: its row of stats.csv, with the model at hand. Killed, the same call goes
    on where it was."""
    asked = config if isinstance(config, Config) else make(config)
    tags, shown, saving = tags_of(asked), trackers_of(asked), asked.checkpoint_every
    try:
        from hostler.train.experiment import experiment  # torch, and all that it imports
    except ModuleNotFoundError as error:
        raise MachineError(f"the trainer needs {error.name}", hint="pip install 'hostler[train]'") from None
    with start(params_of(asked), name=name, save_every=saving, tags=tags, trackers=shown) as run:
        yield from experiment(run, asked)


def together(configs: Sequence[Config | Mapping[str, Any]]) -> Iterator[list[FusedMember]]:
    """Train them all at once on one device, and yield all of them after each epoch: rows, ends and weights
    are those of each trained alone, up to rounding."""
    try:
        from hostler.train import ranks
        from hostler.train.fused.together import together as train
    except ModuleNotFoundError as error:
        raise MachineError(f"the trainer needs {error.name}", hint="pip install 'hostler[train]'") from None

    asked = [config if isinstance(config, Config) else make(config) for config in configs]
    if asked:
        yield from train(asked, ranks.device_of(asked[0]))
