"""Data sets by the first word of their name; each source is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train import custom
from hostler.train.config import Config
from hostler.train.data.split import Data

# first word → module with load(config, rest) -> Data
SOURCES = {
    "libsvm": "libsvm",
    "npz": "npz",
    "synthetic": "synthetic",
    "sklearn": "sklearn_data",
}


def load(config: Config) -> Data:
    if custom.is_place(config.dataset):
        found = custom.load(config.dataset, config)
        if not isinstance(found, Data):
            raise SpecError(
                f"dataset {config.dataset} gave {type(found).__name__}",
                hint="return a hostler.train.data.split.Data",
            )
        return found
    word, _, rest = config.dataset.partition("/")
    if word not in SOURCES or not rest:
        known = [f"{one}/…" for one in SOURCES]
        raise SpecError(
            f"there is no dataset {config.dataset!r}",
            did_you_mean(word, SOURCES, "known: " + ", ".join([*known, "file.py:name"])),
        )
    data: Data = import_module(f"hostler.train.data.{SOURCES[word]}").load(config, rest)
    for name, split in data.splits.items():
        if not len(split):
            raise SpecError(f"split {name!r} of {config.dataset} has no examples")
    return data


def wanted(config: Config) -> dict[str, str]:
    """Our name → the source's name, of all splits that are not null."""
    return {ours: theirs for ours, theirs in config.data_splits_map.items() if theirs is not None}
