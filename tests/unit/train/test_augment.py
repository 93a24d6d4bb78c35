from __future__ import annotations

import pytest
import torch

import train_world as world
from hostler.errors import SpecError
from hostler.train.data import augment, randaugment
from hostler.train.data.augment import Augment
from hostler.train.data.split import IMAGES, TEXT, VECTORS, Data

X = torch.rand(16, 3, 12, 12, generator=torch.Generator().manual_seed(3)) * 2 - 1
Y = torch.arange(16) % 4
PIXELS = (-1.0, 1.0)


@pytest.mark.parametrize("name", ["flip", "crop_2", "resizedcrop_0.3", "randaugment", "mixup", "cutmix_0.5"])
def test_a_batch_is_changed_by_seed_step_and_rank_alone(name: str) -> None:
    def at(step: int, seed: int = 5, rank: int = 0) -> torch.Tensor:
        torch.rand(7)  # whatever else draws
        return Augment([name], seed, 4, PIXELS)(X, Y, step, rank)[0]

    assert torch.equal(at(3), at(3))
    assert not torch.equal(at(3), at(4))
    assert not torch.equal(at(3), at(3, seed=6))
    assert not torch.equal(at(3), at(3, rank=1))
    assert at(3).shape == X.shape
    assert at(3).isfinite().all()
    assert at(3).abs().max() <= 1 + 1e-5


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_mixed_targets_are_shares_of_classes(name: str) -> None:
    _, soft = Augment([name], 5, 4)(X, Y, 1, 0)
    assert soft.shape == (16, 4)
    assert torch.allclose(soft.sum(1), torch.ones(16))


def test_a_resized_crop_shows_a_part_of_the_picture() -> None:
    slope = torch.linspace(0, 1, 32).expand(8, 1, 32, 32)
    seen, _ = Augment(["resizedcrop_0.1"], 1, 2)(slope, torch.zeros(8), 0, 0)
    spans = seen.amax((1, 2, 3)) - seen.amin((1, 2, 3))
    assert spans.max() <= 1 + 1e-6
    assert spans.min() < 0.9


def test_randaugment_of_no_strength_moves_nothing() -> None:
    operations = {one.__name__.lstrip("_"): one for one in randaugment.OPERATIONS}
    assert len(operations) == 14
    unit, none = (X + 1) / 2, torch.zeros(16)
    for name in set(operations) - {"autocontrast", "equalize", "posterize", "solarize"}:
        assert torch.allclose(operations[name](unit, none), unit, atol=1e-5), name


def test_the_changes_of_randaugment_do_what_they_say() -> None:
    operations = {one.__name__.lstrip("_"): one for one in randaugment.OPERATIONS}
    unit, full = (X + 1) / 2, torch.ones(16)
    assert operations["brightness"](unit, -full).mean() < unit.mean()
    assert operations["color"](unit, -full).std(1).mean() < unit.std(1).mean()
    assert operations["contrast"](unit, -full).std() < unit.std()
    assert torch.allclose(operations["solarize"](unit, full), 1 - unit)
    assert operations["posterize"](unit, full).unique().numel() <= 16
    moved = operations["translate_x"](unit, full * 0.5 / randaugment.MOVE / 3)
    assert torch.allclose(moved[..., :-2], unit[..., 2:], atol=1e-5)
    even = operations["equalize"](unit**4, full)
    assert abs(even.mean() - 0.5) < 0.05
    assert operations["autocontrast"](unit * 0.5 + 0.2, full).amax((2, 3)).min() > 0.999
    quarter = operations["rotate"](unit, full * 90 / randaugment.TURN)
    assert torch.allclose(quarter, unit.rot90(1, (2, 3)), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("randaugmnt", "did you mean 'randaugment'"),
        ("flip_2", "a number too many"),
        ("crop_x", "is not a number"),
        ("crop_1.5", "not a whole number"),
        ("resizedcrop_3", "not in"),
        ("mixup_0", "not in"),
    ],
)
def test_an_augmentation_that_cannot_be_is_said(name: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        augment.check([name])


def test_only_pictures_are_cut_and_only_classes_mixed() -> None:
    augment.check_kind(["flip", "mixup"], Data({}, (3, 8, 8), 4, IMAGES))
    augment.check_kind(["mixup"], Data({}, (8,), 4, VECTORS))
    for names, data in (
        (["flip"], Data({}, (8,), 4, VECTORS)),
        (["mixup"], Data({}, (8,), 0, VECTORS)),
        (["mixup"], Data({}, (8,), 4, TEXT)),
    ):
        with pytest.raises(SpecError, match="augmentation"):
            augment.check_kind(names, data)


def test_more_outputs_than_classes_can_be_mixed() -> None:
    made = world.parts(
        dataset="synthetic/1x8x8_3_12", model="tiny/lenet", model_output_dim=5, augment=["mixup", "cutmix"]
    )
    assert len(world.losses(made, 2)) == 2
