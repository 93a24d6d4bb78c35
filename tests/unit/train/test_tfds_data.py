from __future__ import annotations

import io
import random
import shutil
import struct
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import train_world as world
from hostler.errors import DamagedError, MissingError, SpecError
from hostler.trackers.crc32c import crc32c
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


@pytest.mark.parametrize("dataset", ["tfds/pets", "timm/tfds/pets"])
def test_variant_of_a_set_is_evaluated_beside_its_splits(prepared: Path, dataset: str) -> None:
    shutil.copytree(prepared / "pets", prepared / "pets_v2" / "matched-frequency")
    others = {"v2": "pets_v2/matched-frequency", "again": f"{dataset}@train"}
    data = sources.load(world.config(dataset=dataset, data_dir=str(prepared), eval_datasets=others))
    found = {name: len(one) for name, one in data.splits.items()}
    assert found == {"train": 12, "test": 6, "v2": 6, "again": 12}


def test_a_set_whose_files_are_elsewhere_is_said(prepared: Path) -> None:
    info = prepared / "pets/1.0.0/dataset_info.json"
    info.write_text(info.read_text().replace("array_record", "tfrecord"))
    with pytest.raises(MissingError, match=r"pets-train\.tfrecord-00000-of-00001 cannot be read"):
        sources.load(world.config(dataset="tfds/pets", data_dir=str(prepared)))


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.fixture
def as_tfrecord(prepared: Path) -> Path:
    """The same set with its records in TFRecord files."""
    from array_record.python.array_record_module import ArrayRecordReader

    folder = prepared / "pets/1.0.0"
    for path in folder.glob("*.array_record-*"):
        reader = ArrayRecordReader(str(path))
        records = reader.read_all()
        heads = [struct.pack("<Q", len(record)) for record in records]
        parts = [
            head + masked(head) + record + masked(record) for head, record in zip(heads, records, strict=True)
        ]
        reader.close()
        path.with_name(path.name.replace("array_record", "tfrecord")).write_bytes(b"".join(parts))
        path.unlink()
    info = folder / "dataset_info.json"
    info.write_text(info.read_text().replace("array_record", "tfrecord"))
    return prepared


def test_tfrecord_files_are_read_without_tensorflow(as_tfrecord: Path) -> None:
    assert "tensorflow" not in sys.modules
    data = sources.load(world.config(dataset="tfds/pets", data_dir=str(as_tfrecord)))
    assert (data.classes, data.input_shape) == (tuple(world.COLOURS), (3, 8, 8))
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 12, "test": 6}
    train = data.splits["train"]
    assert train.x.float().mean((2, 3)).argmax(1).tolist() == train.y.tolist()
    assert "tensorflow" not in sys.modules


def test_parts_of_a_split_are_parts_of_its_tfrecords(as_tfrecord: Path) -> None:
    splits = {"train": "train[:75%]", "val": "train[75%:]", "test": "test"}
    data = sources.load(world.config(dataset="tfds/pets", data_dir=str(as_tfrecord), data_splits_map=splits))
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 9, "val": 3, "test": 6}


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (40, r"record 0 is damaged: its bytes have another checksum"),
        (2, r"record 0 is damaged: its length has another checksum"),
        (-5, r"record 11 is damaged: the file breaks off"),
    ],
)
def test_damaged_tfrecord_is_one_line(as_tfrecord: Path, at: int, said: str) -> None:
    (path,) = as_tfrecord.rglob("pets-train.tfrecord-*")
    data = path.read_bytes()
    path.write_bytes(data[:at] if at < 0 else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(DamagedError, match=said) as caught:
        sources.load(world.config(dataset="tfds/pets", data_dir=str(as_tfrecord)))
    assert str(path) in caught.value.message and "\n" not in caught.value.message


def test_file_of_another_kind_is_no_tfrecord(as_tfrecord: Path) -> None:
    (path,) = as_tfrecord.rglob("pets-train.tfrecord-*")
    path.write_text("1 1:0.5\n" * 100)
    with pytest.raises(DamagedError, match=r"is this a TFRecord file\?"):
        sources.load(world.config(dataset="tfds/pets", data_dir=str(as_tfrecord)))


def test_names_and_splits_that_are_not_there_are_said(prepared: Path) -> None:
    splits = {"train": "train", "test": "tets"}
    with pytest.raises(SpecError, match="did you mean 'test'"):
        sources.load(world.config(dataset="tfds/pets", data_dir=str(prepared), data_splits_map=splits))
    with pytest.raises(SpecError, match="did you mean 'mnist'"):
        sources.load(world.config(dataset="tfds/mnits", data_dir=str(prepared)))
    with pytest.raises(MissingError, match="tfds/mnist is not in"):
        sources.load(world.config(dataset="tfds/mnist", data_dir=str(prepared), data_download=False))
