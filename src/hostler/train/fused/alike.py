"""Decides which trainings may be trained together, and why one may not. Pure.

Together means: one model's shape, one set of data, one length; what differs is a number that can be a
vector with an entry for each of them, or what each does for itself: how often it logs, what it saves.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.custom import is_place

VECTORS = frozenset(
    {
        "ada_eps",
        "averaging",
        "base_lr",
        "best_checkpoint_goal",
        "best_checkpoint_metric",
        "clip_grad_norm",
        "early_stopping_patience",
        "label_smoothing",
        "log_interval",
        "lr_schedule",
        "max_allowed_loss",
        "model_head_init",
        "momentum",
        "output_dir",
        "save_best_checkpoint",
        "save_freq",
        "seed_model",
        "seed_order",
        "seed_training",
        "wandb",
        "wandb_project_name",
        "wandb_run_name",
        "wandb_tags",
        "warmup_steps",
        "weight_decay",
        "weight_decay_biases",
    }
)


def shape(config: Config) -> str:
    """Two trainings of one shape may go together."""
    values = dataclasses.asdict(config)
    return json.dumps({k: v for k, v in values.items() if k not in VECTORS}, sort_keys=True, default=str)


def obstacle(config: Config) -> str:
    """The reason why a training cannot share a group; '' if it can."""
    found = {
        f"loss: {config.loss} is a user's": is_place(config.loss),
        f"optim_alg: {config.optim_alg} is a user's": is_place(config.optim_alg),
        "train_length is 0: nothing is trained": config.train_length == 0,
    }
    return next((why for why, holds in found.items() if holds), "")


class Apart(SpecError):
    """Raised for trainings that cannot share a group; each can run by itself."""

    def __init__(self, why: str, hint: str = "each can be trained by itself") -> None:
        super().__init__(f"cannot be trained together: {why}", hint)


def check(configs: Sequence[Config]) -> None:
    """Apart's one line if these cannot go together."""
    for config in configs:
        why = obstacle(config)
        if why:
            raise Apart(why)
    if len({shape(config) for config in configs}) > 1:
        raise Apart(
            f"they differ in {', '.join(differing(configs))}",
            hint="only numbers that can be a vector may differ: " + ", ".join(sorted(VECTORS)),
        )


def differing(configs: Sequence[Config]) -> list[str]:
    """The keys, not among the vectors, in which some differ."""
    rows = [dataclasses.asdict(config) for config in configs]
    return [k for k in rows[0] if k not in VECTORS and len({repr(row[k]) for row in rows}) > 1]
