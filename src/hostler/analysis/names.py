"""Names of a frame's columns, and a metric's best value."""

from __future__ import annotations

FACTS = [
    "run",
    "name",
    "sweep",
    "index",
    "round",
    "section",
    "state",
    "attempts",
    "host",
    "code",
    "started",
    "ended",
    "seconds",
    "cost",
    "step",
    "tags",
    "failure",
    "reason",
    "ranked",
    "ranked_of",
    "ranked_step",
]

TIMES = ("started", "ended")  # facts that are times, in UTC
SYSTEM = "system/"  # metrics of the machine, not of the script

_LOW = ("loss", "error", "err", "mse", "mae", "rmse", "nll", "perplexity")


def best_of(column: str) -> str:
    return f"{column}.best"


def is_low_best(name: str, metric: str | None, goal: str) -> bool:
    """Whether less is better: as the sweep says of its metric, else by the name."""
    if name == metric:
        return goal == "min"
    last = name.lower().replace("-", "_").rpartition("/")[2]
    return any(word in last.split("_") for word in _LOW)
