"""The tracking tools that a run is shown in, as frozen data. No key, no secret: those are the machine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass

TENSORBOARD, WANDB, MLFLOW, COMET, TRACKIO = "tensorboard", "wandb", "mlflow", "comet", "trackio"
OPTIONS: dict[str, tuple[str, ...]] = {
    TENSORBOARD: ("dir",),
    WANDB: ("project", "entity", "group", "name", "mode", "dir"),
    MLFLOW: ("uri", "experiment"),
    COMET: ("project", "workspace", "mode", "dir"),
    TRACKIO: ("project", "dir"),
}


@dataclass(frozen=True)
class Tracking:
    """A tool that runs are shown in."""

    kind: str
    options: Mapping[str, str] = field(default_factory=dict)


def from_json(rows: Sequence[Any]) -> tuple[Tracking, ...]:
    """Trackings of a record; a plain name is one without options."""
    return tuple(
        Tracking(row) if isinstance(row, str) else Tracking(row["kind"], dict(row.get("options") or {}))
        for row in rows
    )
