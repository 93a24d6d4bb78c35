"""Data sets by the first word of their name; each source is imported when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F

from hostler.errors import MachineError, MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train import custom, memory
from hostler.train.config import Config
from hostler.train.data.split import IMAGES, VECTORS, Arrays, Data, Items

# first word → module with load(config, rest) -> Data
SOURCES = {
    "libsvm": "libsvm",
    "npz": "npz",
    "synthetic": "synthetic",
    "sklearn": "sklearn_data",
    "torchvision": "torchvision_data",
    "folder": "folders",
    "bytes": "mapped",
    "tar": "shards",
    "hf": "hub",
    "tfds": "tfds_data",
}
# how the same sets were called before
ALIASES = {"timm/torch/": "torchvision/", "timm/tfds/": "tfds/"}


def load(config: Config) -> Data:
    """The splits of the dataset, and of each other one that is evaluated on."""
    data = _dataset(config)
    for name, wanted_there in config.eval_datasets.items():
        data = replace(data, splits={**data.splits, name: _other(data, name, wanted_there, config)})
    return fitted(data, config.image_size)


def _dataset(config: Config) -> Data:
    if custom.is_place(config.dataset):
        found = custom.load(config.dataset, config=config)
        if not isinstance(found, Data):
            raise SpecError(
                f"dataset {config.dataset} gave {type(found).__module__}.{type(found).__name__}",
                hint="return a hostler.train.data.split.Data",
            )
        return found
    for old, new in ALIASES.items():
        if config.dataset.startswith(old):
            config = config.but(dataset=new + config.dataset.removeprefix(old))
    word, _, rest = config.dataset.partition("/")
    if word in SOURCES and not rest:
        raise SpecError(f"dataset {config.dataset!r} names no data set", hint=f"{word}/NAME; docs/trainer.md")
    if word not in SOURCES:
        known = [f"{one}/…" for one in SOURCES]
        raise SpecError(
            f"no dataset named {config.dataset!r}",
            did_you_mean(word, SOURCES, "known: " + ", ".join([*known, "file.py:name"])),
        )
    data = _loaded(SOURCES[word], rest, config)
    for name, split in data.splits.items():
        if not len(split):
            raise SpecError(f"split {name!r} of {config.dataset} has no examples")
    return data


def _other(data: Data, name: str, text: str, config: Config) -> Arrays | Items:
    """A split of another dataset, which the same model can be evaluated on."""
    dataset, _, split = text.partition("@")
    dataset = _from_same_source(dataset, config.dataset)
    shape = {"model_input_shape": data.input_shape} if data.kind == IMAGES else {}
    asked = config.but(dataset=dataset, data_splits_map={"train": split or "test"}, eval_datasets={}, **shape)
    found = _dataset(asked)
    train = found.splits["train"]
    if (found.kind, found.classes or found.n_classes) != (data.kind, data.classes or data.n_classes):
        raise SpecError(f"eval_datasets: {name}: {dataset} has other classes than {config.dataset}")
    if data.kind == VECTORS and isinstance(train, Arrays) and found.input_shape < data.input_shape:
        return Arrays(F.pad(train.x, (0, data.input_shape[0] - found.input_shape[0])), train.y)
    if found.input_shape != data.input_shape or found.prepare is not data.prepare:
        shapes = f"{list(found.input_shape)}, not {list(data.input_shape)}"
        raise SpecError(
            f"eval_datasets: {name}: examples of {dataset} are of the shape {shapes}",
            hint="image_size: the side that all pictures are scaled to",
        )
    return train


def _from_same_source(dataset: str, beside: str) -> str:
    """`imagenet_v2/…` beside `tfds/imagenet2012` is `tfds/imagenet_v2/…`. Pure."""
    if custom.is_place(dataset) or dataset.partition("/")[0] in SOURCES or dataset.startswith((*ALIASES,)):
        return dataset
    prefixes = (*ALIASES, *(f"{word}/" for word in SOURCES))
    return next((prefix for prefix in prefixes if beside.startswith(prefix)), "") + dataset


def _loaded(module: str, rest: str, config: Config) -> Data:
    try:
        data: Data = import_module(f"hostler.train.data.{module}").load(config, rest)
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not memory.ran_out(error):
            raise
        raise MachineError(f"{config.dataset} does not fit in this machine's memory") from None
    return data


def fitted(data: Data, size: int | None) -> Data:
    """Pictures that lie there in another size than asked for are scaled on the device."""
    if size is None or data.kind != IMAGES or data.input_shape[1:] == (size, size):
        return data

    def prepare(x: torch.Tensor) -> torch.Tensor:
        ready = data.prepare(x) if data.prepare is not None else x
        return F.interpolate(ready, (size, size), mode="bilinear", antialias=True)

    return replace(data, input_shape=(data.input_shape[0], size, size), prepare=prepare)


def folder(config: Config, name: str, how: str) -> Path:
    """A folder in data_dir, or where the name leads; `how`: what a dataset of its kind is called."""
    root = next((path for path in (Path(config.data_dir, name), Path(name)) if path.is_dir()), None)
    if root is not None:
        return root
    parent = Path(config.data_dir, name).parent
    near = [path.name for path in parent.glob("*") if path.is_dir()] if parent.is_dir() else []
    raise MissingError(
        f"folder {Path(config.data_dir, name)} does not exist", did_you_mean(Path(name).name, near, how)
    )


def wanted(config: Config) -> dict[str, str]:
    """Our name → the source's name, of all splits that are not null."""
    return {ours: theirs for ours, theirs in config.data_splits_map.items() if theirs is not None}
