"""`experiment_generator(config)`: the trainer for programs that want to look at a training between its
epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hostler.api import start
from hostler.train.config import Config
from hostler.train.configfile import make


def experiment_generator(
    config: Config | Mapping[str, Any], *, name: str | None = None
) -> Iterator[dict[str, float]]:
    """Train, and yield each epoch's row of stats.csv. Killed, the same call goes on where it was."""
    from hostler.train.experiment import experiment, params_of  # torch, and all that it imports

    asked = config if isinstance(config, Config) else make(config)
    shown = _wandb(asked) if asked.wandb else None
    tags = asked.wandb_tags if asked.wandb else ()
    saving = asked.checkpoint_every
    with start(params_of(asked), name=name, save_every=saving, tags=tags, trackers=shown) as run:
        yield from experiment(run, asked)


def _wandb(asked: Config) -> dict[str, dict[str, str]]:
    given = {"project": asked.wandb_project_name, "name": asked.wandb_run_name}
    return {"wandb": {name: text for name, text in given.items() if text}}
