"""`tfds/NAME`: a set of TensorFlow Datasets, as array records or TFRecord files; TensorFlow is not needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hostler.errors import MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data import pictures, tfrecord
from hostler.train.data.lock import alone
from hostler.train.data.sources import wanted
from hostler.train.data.split import Data
from hostler.train.data.tfrecord import Record, Shard
from hostler.train.library import need

_LOCK = ".tfds.lock"


def load(config: Config, name: str) -> Data:
    tfds = need("tensorflow_datasets", "tensorflow-datasets", config.dataset)
    builder = _builder(tfds, name, config)
    image, label = _keys(builder, config)
    missing = [
        theirs for theirs in wanted(config).values() if theirs.partition("[")[0] not in builder.info.splits
    ]
    if missing:
        known = list(builder.info.splits)
        raise SpecError(
            f"{config.dataset} has no split {missing[0]!r}",
            did_you_mean(missing[0], known, f"it has {', '.join(known)}"),
        )
    classes = tuple(builder.info.features[label].names)
    splits = {
        ours: Records(_opened(builder, theirs, config), image, label)
        for ours, theirs in wanted(config).items()
    }
    return pictures.build(splits, classes, config)


class Records:
    """(picture, class) by index."""

    def __init__(self, source: Any, image: str, label: str) -> None:
        self._source, self._image, self._label = source, image, label

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        row = self._source[index]
        array = row[self._image]
        return Image.fromarray(array[:, :, 0] if array.shape[-1] == 1 else array), int(row[self._label])


class TfRecords:
    """Examples of TFRecord files by index, decoded as the set's description says."""

    def __init__(self, records: list[Record], features: Any) -> None:
        self._records, self._features = records, features

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Any:
        return self._features.deserialize_example_np(self._records[index].read())


def _opened(builder: Any, split: str, config: Config) -> Any:
    if builder.info.file_format and builder.info.file_format.value == "tfrecord":
        parts = builder.info.splits[split].file_instructions
        shards = [
            Shard(Path(part.filename), part.skip, part.take if part.take >= 0 else None) for part in parts
        ]
        return TfRecords(tfrecord.index(shards), builder.info.features)
    try:
        return builder.as_data_source(split=split)
    except (NotImplementedError, ValueError, OSError) as error:
        raise MissingError(
            f"{config.dataset}: split {split!r} cannot be read: {_first(error)}",
            hint="prepare it with file_format='array_record'",
        ) from None


def _builder(tfds: Any, name: str, config: Config) -> Any:
    """The builder of the data in data_dir; the first process prepares them if they are missing."""
    with alone(Path(config.data_dir, _LOCK)):
        path = _prepared(config, name)
        if path is not None:
            return tfds.builder_from_directory(str(path))
        builder = _known(tfds, name, config)
        if not config.data_download:
            raise MissingError(
                f"{config.dataset} is not in {config.data_dir}", hint="data_download: true fetches it"
            )
        _prepare(builder, name, config)
        return builder


def _prepared(config: Config, name: str) -> Path | None:
    """The newest version of a set: the folders that hold one have this file."""
    paths = [one.parent for one in Path(config.data_dir, name).rglob("dataset_info.json")]
    paths = [one for one in paths if not one.name.startswith("incomplete")]
    return max(paths, key=lambda one: [int(n) for n in re.findall(r"\d+", one.name)], default=None)


def _known(tfds: Any, name: str, config: Config) -> Any:
    word = name.partition("/")[0].partition(":")[0]
    known = tfds.list_builders(with_community_datasets=False)
    if word not in known:
        hint = did_you_mean(word, known, "tfds.list_builders() has the names")
        raise SpecError(f"TensorFlow Datasets has no {word!r}", hint)
    try:
        return tfds.builder(name, data_dir=config.data_dir, file_format="array_record")
    except ImportError as error:
        raise MissingError(
            f"{config.dataset} is not in {config.data_dir}, and cannot be prepared here: {_first(error)}",
            hint=f"prepare {name} as array_record where TensorFlow is installed",
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingError(f"{config.dataset}: {_first(error)}") from None


def _prepare(builder: Any, name: str, config: Config) -> None:
    try:
        builder.download_and_prepare()
    except ImportError as error:
        raise MissingError(
            f"{config.dataset} cannot be prepared here: {_first(error)}",
            hint=f"prepare {name} as array_record where TensorFlow is installed",
        ) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise MissingError(
            f"{config.dataset} cannot be fetched: {_first(error)}", hint=f"put it into {config.data_dir}"
        ) from None


def _keys(builder: Any, config: Config) -> tuple[str, str]:
    """The columns of picture and class."""
    image, label = config.data_input, config.data_target
    if builder.info.supervised_keys:
        image, label = image or builder.info.supervised_keys[0], label or builder.info.supervised_keys[1]
    features = dict(builder.info.features)
    for key, kind in ((image, "Image"), (label, "ClassLabel")):
        if key not in features or type(features[key]).__name__ != kind:
            text = ", ".join(f"{name} ({type(one).__name__})" for name, one in features.items())
            raise SpecError(
                f"{config.dataset} has no {kind} {key!r}", hint=f"data_input, data_target: it has {text}"
            )
    return str(image), str(label)


def _first(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0]
