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
    kept = [field for field in dataclasses.fields(config) if field.name not in ELSEWHERE]
    maps = [field for field in kept if field.default_factory is not dataclasses.MISSING]
    rest = [field for field in kept if field not in maps]
    made = dataclasses.make_dataclass(
        "Params",
        [
            *((field.name, Any) for field in maps),
            *((field.name, Any, dataclasses.field(default=field.default)) for field in rest),
        ],
    )
    return made(**{field.name: _plain(getattr(config, field.name)) for field in kept})


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
        field.name: _plain(getattr(resolved, field.name))
        for field in dataclasses.fields(asked)
        if field.name not in ELSEWHERE and getattr(asked, field.name) is None
        if getattr(resolved, field.name) is not None
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
