"""The pruner that a sweep's `prune:` names."""

from __future__ import annotations

from hostler.search.asha import Asha
from hostler.search.base import Pruner
from hostler.search.hyperband import Hyperband
from hostler.search.median import Median
from hostler.search.patience import Patience
from hostler.spec.pruning import Prune


def pruner(spec: Prune) -> Pruner:
    first = spec.min or 1
    if spec.method == "asha":
        return Asha(first, spec.factor, spec.max, spec.pause)
    if spec.method == "hyperband":
        assert spec.max is not None
        return Hyperband(first, spec.max, spec.factor, spec.pause)
    if spec.method == "median":
        return Median(first, spec.every, spec.others)
    return Patience(spec.patience, spec.delta, spec.min or 0)
