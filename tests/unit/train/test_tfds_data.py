from __future__ import annotations

import io
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import train_world as world
from hostler.errors import MissingError, SpecError
from hostler.train.data import sources


@lru_cache(maxsize=1)
def builder() -> Any:
    """The library knows each name once."""
    import tensorflow_datasets as tfds

    class Pets(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc]
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            features = {
                "image": tfds.features.Image(shape=(8, 8, 3)),
                "label": tfds.features.ClassLabel(names=list(world.COLOURS)),
            }
            return tfds.core.DatasetInfo(
                builder=self,
                features=tfds.features.FeaturesDict(features),
                supervised_keys=("image", "label"),
            )

        def _split_generators(self, _: Any) -> dict[str, Any]:
            return {"train": self._generate_examples(4), "test": self._generate_examples(2)}

        def _generate_examples(self, count: int) -> Any:
            chance = random.Random(1)
            for place in range(count):
                for name in world.COLOURS:
                    yield f"{name}{place}", {"image": png(name, chance), "label": name}

    return Pets


def png(name: str, chance: random.Random) -> io.BytesIO:
    file = io.BytesIO()
    world.picture(name, chance, (8, 8)).save(file, "PNG")
    file.seek(0)
    return file


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A real set of TensorFlow Datasets, made without TensorFlow."""
    world.needs("tensorflow_datasets")
    builder()(data_dir=str(tmp_path), file_format="array_record").download_and_prepare()
    return tmp_path


@pytest.mark.parametrize("name", ["tfds/pets", "timm/tfds/pets"])
def test_a_prepared_set_is_read_without_tensorflow(prepared: Path, name: str) -> None:
    data = sources.load(world.config(dataset=name, data_dir=str(prepared)))
    assert data.classes == tuple(world.COLOURS)
    assert data.input_shape == (3, 8, 8)
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 12, "test": 6}
    train = data.splits["train"]
    assert train.x.float().mean((2, 3)).argmax(1).tolist() == train.y.tolist()


def test_a_set_in_another_format_is_said(prepared: Path) -> None:
    info = prepared / "pets/1.0.0/dataset_info.json"
    info.write_text(info.read_text().replace("array_record", "tfrecord"))
    with pytest.raises(MissingError, match="array_record"):
        sources.load(world.config(dataset="tfds/pets", data_dir=str(prepared)))


def test_names_and_splits_that_are_not_there_are_said(prepared: Path) -> None:
    splits = {"train": "train", "test": "tets"}
    with pytest.raises(SpecError, match="did you mean 'test'"):
        sources.load(world.config(dataset="tfds/pets", data_dir=str(prepared), data_splits_map=splits))
    with pytest.raises(SpecError, match="did you mean 'mnist'"):
        sources.load(world.config(dataset="tfds/mnits", data_dir=str(prepared)))
    with pytest.raises(MissingError, match="tfds/mnist is not in"):
        sources.load(world.config(dataset="tfds/mnist", data_dir=str(prepared), data_download=False))
