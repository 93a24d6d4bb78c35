"""`torchvision/NAME`: the sets that torchvision knows, from data_dir, or fetched once however many ask."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data import pictures
from hostler.train.data.lock import alone
from hostler.train.data.npz import PIXELS, scaled
from hostler.train.data.sources import wanted
from hostler.train.data.split import IMAGES, Arrays, Data
from hostler.train.library import need

WHOLE = 2**31  # bytes of a set that lies in memory anyway, as CIFAR does


def load(config: Config, name: str) -> Data:
    """`torchvision/emnist/letters`: what follows a name chooses among the set's variants."""
    known = _classes(need("torchvision.datasets", "torchvision", config.dataset))
    word, _, variant = name.partition("/")
    if _plain(word) not in known:
        names = [one.__name__.lower() for one in known.values()]
        hint = did_you_mean(word.lower(), names, "docs/trainer.md; torchvision.datasets has the names")
        raise SpecError(f"torchvision has no data set {word!r}", hint)
    kind = known[_plain(word)]
    options = {ours: _options(kind, theirs, variant) for ours, theirs in wanted(config).items()}
    sets = {ours: _opened(kind, values, config) for ours, values in options.items()}
    classes = _named(sets["train"])
    arrays = {ours: _arrays(one) for ours, one in sets.items()}
    whole = {ours: one for ours, one in arrays.items() if one is not None}
    if len(whole) == len(sets) and len({one.x.shape[1:] for one in whole.values()}) == 1:
        shape = tuple(whole["train"].x.shape[1:])
        return Data(whole, shape, len(classes) or _count(whole), IMAGES, scaled, classes, pixels=PIXELS)
    if not classes:
        raise SpecError(f"{config.dataset} does not hold pictures with classes", hint="dataset: file.py:name")
    return pictures.build(sets, classes, config)


def _classes(module: Any) -> dict[str, Any]:
    """Dataset classes whose files lie below a root."""
    found = [var for var in vars(module).values() if inspect.isclass(var)]
    return {_plain(one.__name__): one for one in found if "root" in inspect.signature(one).parameters}


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _opened(kind: Any, options: dict[str, Any], config: Config) -> Any:
    """From the disk; else fetched by whoever comes first, while the others wait."""
    root = Path(config.data_dir)
    if not config.data_download or "download" not in inspect.signature(kind).parameters:
        return _made(kind, root, config, options)
    with alone(root / f".torchvision-{kind.__name__}.lock"):
        try:
            return _made(kind, root, config, options)
        except MissingError:
            return _made(kind, root, config, {**options, "download": True})


def _made(kind: Any, root: Path, config: Config, options: dict[str, Any]) -> Any:
    try:
        return kind(root, **options)
    except (RuntimeError, OSError, AssertionError) as error:
        what = "cannot be fetched" if "download" in options else "is not there"
        raise MissingError(
            f"{config.dataset} in {root} {what}: {_first(error)}", hint=f"put its files into {root}"
        ) from None
    except (ValueError, TypeError) as error:  # a split or variant that it does not have
        raise SpecError(f"{config.dataset}: {_first(error)}") from None


def _options(kind: Any, split: str, variant: str) -> dict[str, Any]:
    taken = inspect.signature(kind).parameters
    options: dict[str, Any] = {"split": variant} if variant else {}
    if "train" in taken:
        if split not in ("train", "test"):
            raise SpecError(f"{kind.__name__} has no split {split!r}", hint="train, test")
        return {**options, "train": split == "train"}
    for word in ("split", "image_set"):
        if word in taken:
            return {**options, word: split}
    return options


def _named(found: Any) -> tuple[str, ...]:
    names = getattr(found, "classes", None) or getattr(found, "categories", None) or ()
    return tuple(", ".join(name) if isinstance(name, tuple) else str(name) for name in names)


def _count(splits: dict[str, Arrays]) -> int:
    return max(int(arrays.y.max()) for arrays in splits.values()) + 1


def _arrays(found: Any) -> Arrays | None:
    """Arrays of a set that holds its pictures as one array of bytes, in order of its examples; else None."""
    x, y = getattr(found, "data", None), getattr(found, "targets", getattr(found, "labels", None))
    if not isinstance(x, (np.ndarray, torch.Tensor)) or y is None or not len(found):
        return None
    x = torch.as_tensor(x)
    if x.dtype != torch.uint8 or x.nbytes > WHOLE or x.ndim not in (3, 4):
        return None
    x = x[:, None] if x.ndim == 3 else x if x.shape[1] in (1, 3) else x.permute(0, 3, 1, 2).contiguous()
    channels, height, width = x.shape[1:]
    shape = pictures.PictureShape(channels, height, width)
    for place in (0, len(found) - 1):
        picture, target = found[place]
        if not torch.equal(pictures.as_bytes(picture, shape), x[place]) or int(target) != int(y[place]):
            return None
    return Arrays(x, torch.as_tensor(np.asarray(y), dtype=torch.long))


def _first(error: Exception) -> str:
    return str(error).partition("\n")[0]
