"""`transform: file.py:name`: a user's function of each example's input, in training and evaluation alike.

It is called as `name(x, training)`. What it draws at random in training begins from a seed of pass and
example, like everything that a loader does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from hostler.errors import SpecError
from hostler.train import custom
from hostler.train.config import Config
from hostler.train.data.split import Arrays, Data, Items

Change = Callable[[Any, bool], Any]


@dataclass(frozen=True)
class Transformed:
    items: Arrays | Items
    change: Change
    training: bool

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        x, y = self.items[index]
        return self.change(x, self.training), y


def applied(data: Data, config: Config) -> Data:
    """The data with the config's transform before all its examples."""
    if config.transform is None:
        return data
    change = custom.find(config.transform, "x", "training")
    splits = {name: Transformed(one, change, name == "train") for name, one in data.splits.items()}
    first = splits["train"][0][0]
    if not isinstance(first, torch.Tensor):
        raise SpecError(
            f"transform {config.transform} gave {type(first).__name__}", hint="return a torch.Tensor"
        )
    return replace(data, splits=splits, input_shape=tuple(first.shape))
