"""`sklearn/NAME`: the small sets that scikit-learn carries (digits, iris, wine, breast_cancer), split 4
to 1."""

from __future__ import annotations

import torch

from hostler.errors import MachineError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.npz import of
from hostler.train.data.sources import wanted
from hostler.train.data.split import Arrays, Data

NAMES = ("digits", "iris", "wine", "breast_cancer")


def load(config: Config, name: str) -> Data:
    if name not in NAMES:
        raise SpecError(f"scikit-learn has no data set {name!r}", did_you_mean(name, NAMES, ", ".join(NAMES)))
    try:
        from sklearn import datasets
    except ImportError:
        raise MachineError("this needs the package scikit-learn", hint="pip install scikit-learn") from None
    found = getattr(datasets, f"load_{name}")()
    x, y = torch.tensor(found.data, dtype=torch.float32), torch.tensor(found.target, dtype=torch.long)
    x = (x - x.mean(0)) / x.std(0).clamp_min(1e-6)
    if name == "digits":
        x = x.reshape(-1, 1, 8, 8)
    held_out = torch.arange(len(y)) % 5 == 4
    parts = {"train": ~held_out, "test": held_out}
    unknown = [theirs for theirs in wanted(config).values() if theirs not in parts]
    if unknown:
        raise SpecError(f"sklearn/{name} has no split {unknown[0]!r}", hint="train, test")
    return of({ours: Arrays(x[parts[theirs]], y[parts[theirs]]) for ours, theirs in wanted(config).items()})
