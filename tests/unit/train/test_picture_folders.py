from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tar_world
import train_world as world
from hostler.errors import DamagedError, HostlerError, MissingError, SpecError
from hostler.train.data import pictures, sources
from hostler.train.data.feed import LoaderFeed
from hostler.train.data.lock import alone
from hostler.train.data.split import Arrays


def load(root: Path, **given: object) -> object:
    return sources.load(world.config(dataset="folder/pets", data_dir=str(root), **given))


@pytest.mark.parametrize("end", ["png", "jpg"])
def test_a_folder_per_class_is_a_data_set(tmp_path: Path, end: str) -> None:
    world.folder(tmp_path / "pets", {"train": 4, "test": 2}, end=end)
    data = load(tmp_path)
    assert data.classes == ("cat", "dog", "fish")
    assert data.input_shape == (3, 32, 32)
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 12, "test": 6}
    x, y = data.splits["train"].x, data.splits["train"].y
    assert x.dtype == torch.uint8
    assert x.float().mean((2, 3)).argmax(1).tolist() == y.tolist()  # red, green, blue


def test_several_evaluation_sets_have_their_own_folders(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 2, "val": 1, "night": 3})
    splits = {"train": "train", "val": "val", "dark": "night", "test": None}
    data = load(tmp_path, data_splits_map=splits)
    assert {name: len(one) for name, one in data.splits.items()} == {"train": 6, "val": 3, "dark": 9}


def test_pictures_outside_memory_are_the_same_ones(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 2, "test": 1}, size=(40, 30))
    held, loaded = load(tmp_path, image_size=16), load(tmp_path, image_size=16, data_on_device=False)
    assert isinstance(held.splits["train"], Arrays)
    assert isinstance(loaded.splits["train"], pictures.Loaded)
    for place in range(len(held.splits["train"])):
        mine, theirs = held.splits["train"][place], loaded.splits["train"][place]
        assert torch.equal(mine[0], theirs[0])
        assert int(mine[1]) == theirs[1]


def test_loaded_pictures_go_through_a_training_step(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 2, "test": 1})
    made = world.parts(
        dataset="folder/pets", data_dir=str(tmp_path), image_size=16, data_on_device=False,
        model="tiny/lenet", augment=["flip", "crop_2", "randaugment"], num_workers=0,
    )  # fmt: skip
    assert isinstance(made.feed, LoaderFeed)
    first = world.losses(made)
    assert first[-1] < first[0]


@pytest.mark.parametrize("kind", ["folder/pets", "bytes/raw"])
def test_trial_pass_has_a_batch_where_nothing_is_trained(tmp_path: Path, kind: str) -> None:
    world.folder(tmp_path / "pets", {"train": 2, "test": 1})
    tar_world.raw(tmp_path / "raw", {"train": 6, "test": 3})
    made = world.parts(
        dataset=kind, data_dir=str(tmp_path), image_size=16, data_on_device=False, num_workers=0,
        model="tiny/lenet", train_length=0,
    )  # fmt: skip
    assert len(made.batch(0)[1]) == 4


def test_pictures_in_memory_are_scaled_on_the_device() -> None:
    data = sources.load(world.config(dataset="synthetic/3x8x8_2_4_uint8", image_size=16))
    assert data.input_shape == (3, 16, 16)
    assert data.prepare(data.splits["train"].x).shape == (4, 3, 16, 16)


def refused(root: Path, kind: type[HostlerError], **given: object) -> str:
    with pytest.raises(kind) as caught:
        load(root, **given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_pictures_of_several_sizes_want_a_size(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 1, "test": 1})
    world.picture("cat", world.random.Random(1), (20, 10)).save(tmp_path / "pets/train/cat/odd.png")
    assert "image_size" in refused(tmp_path, SpecError)
    assert load(tmp_path, image_size=12).input_shape == (3, 12, 12)


def test_a_folder_that_is_not_there_has_a_near_one(tmp_path: Path) -> None:
    world.folder(tmp_path / "pest", {"train": 1})
    assert "did you mean 'pest'" in refused(tmp_path, MissingError)


def test_a_split_that_is_not_there_has_a_near_one(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 1, "tests": 1})
    assert "did you mean 'tests'" in refused(tmp_path, SpecError)


def test_a_split_without_pictures_is_said(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 1, "test": 0})
    assert "split 'test' of folder/pets has no examples" in refused(tmp_path, SpecError)


def test_a_class_that_only_an_evaluation_set_has_is_said(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 1, "test": 1})
    (tmp_path / "pets/test/fishes").mkdir()
    assert "did you mean 'fish'" in refused(tmp_path, SpecError)


def test_a_damaged_picture_is_named(tmp_path: Path) -> None:
    world.folder(tmp_path / "pets", {"train": 1, "test": 1})
    (tmp_path / "pets/train/dog/0.png").write_bytes(b"\x89PNG\r\n nothing")
    assert "dog/0.png cannot be read" in refused(tmp_path, DamagedError)


def test_read_only_folder_is_read_without_a_lock(tmp_path: Path) -> None:
    (tmp_path / "no-folder").write_text("")
    with alone(tmp_path / "no-folder/.lock"):
        pass
