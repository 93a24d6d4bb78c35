"""The sampler of a search that learns, by its method's name; Optuna is imported here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.search.search import Sampler
from hostler.spec.methods import check_installed
from hostler.spec.space import Space


def sampler(space: Space, goals: Sequence[str], seed: int) -> Sampler:
    """MachineError, in one line, where what it needs is not installed."""
    check_installed(space.method)
    from hostler.search.optuna_sampler import OptunaSampler

    return OptunaSampler(space, goals, seed)
