"""Identity of a training: the keys of a config that its result depends on, and their defaults.

The rest is of the machine: a run goes on with other ones.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hostler.train.config import Config

ELSEWHERE = (
    "output_dir",
    "device",
    "host_name",
    "num_workers",
    "checkpoint_every",
    "log_to_stdout",
    "data_dir",
    "data_on_device",
    "trial_pass",
    "on_out_of_memory",
    "cuda_graph",
)


def params_of(config: Config) -> Any:
    """A dataclass of them: what a run records as its parameters, and the project as what they are if nobody
    gives them. A map has no default there: one that was given has other names in it."""
    kept = [one for one in dataclasses.fields(config) if one.name not in ELSEWHERE]
    maps = [one for one in kept if one.default_factory is not dataclasses.MISSING]
    rest = [one for one in kept if one not in maps]
    made = dataclasses.make_dataclass(
        "Params",
        [
            *((one.name, Any) for one in maps),
            *((one.name, Any, dataclasses.field(default=one.default)) for one in rest),
        ],
    )
    return made(**{one.name: _plain(getattr(config, one.name)) for one in kept})


def trackers_of(config: Config) -> dict[str, dict[str, str]] | None:
    """Trackers by the keys `wandb…`, as `hostler.start(trackers=…)` takes them."""
    given = {"project": config.wandb_project_name, "name": config.wandb_run_name}
    return {"wandb": {name: text for name, text in given.items() if text}} if config.wandb else None


def tags_of(config: Config) -> tuple[str, ...]:
    """Tags of a run that a tracker shows."""
    return config.wandb_tags if config.wandb else ()


def inferred(asked: Config, resolved: Config) -> dict[str, Any]:
    """Values that the training settled itself: seeds that were drawn, classes, shapes, sizes."""
    return {
        one.name: _plain(getattr(resolved, one.name))
        for one in dataclasses.fields(asked)
        if one.name not in ELSEWHERE and getattr(asked, one.name) is None
        if getattr(resolved, one.name) is not None
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
