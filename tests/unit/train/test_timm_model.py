from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import train_world as world
from hostler.errors import MissingError, SpecError
from hostler.train.models import head

BYTES = "synthetic/3x32x32_4_24_uint8"


@pytest.fixture(autouse=True)
def library() -> None:
    world.needs("timm")


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "mobilenetv3_small_050"])
def test_any_model_of_timm_fits_the_data(name: str) -> None:
    made = world.parts(dataset=BYTES, model=f"timm/{name}")
    x, y = made.batch(0)
    assert made.model(x).shape == (len(y), 4)


def test_a_model_of_timm_learns() -> None:
    options = {"depth": 1, "embed_dim": 48, "num_heads": 2}
    made = world.parts(
        dataset=BYTES,
        model="timm/vit_tiny_patch16_224",
        model_options=options,
        optim_alg="adam",
        base_lr=0.003,
    )
    found = world.losses(made)
    assert found[-1] < found[0] / 2


def test_gray_pictures_and_options_are_taken() -> None:
    made = world.parts(
        dataset="synthetic/1x16x16_3_12", model="timm/vit_tiny_patch16_224",
        model_options={"depth": 1, "embed_dim": 48, "patch_size": 8},
    )  # fmt: skip
    assert sum(one.numel() for one in made.model.parameters()) < 100_000


def test_pictures_that_were_bytes_come_as_the_model_knows_them() -> None:
    made = world.parts(dataset=BYTES, model="timm/resnet10t")
    seen: list[torch.Tensor] = []
    made.model.conv1.register_forward_pre_hook(lambda _, given: seen.append(given[0]))  # type: ignore[operator]
    x = torch.stack([torch.full((3, 32, 32), -1.0), torch.full((3, 32, 32), 1.0)])
    made.model.eval()(x)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    assert torch.allclose(seen[0][0, :, 0, 0], -mean / deviation, atol=1e-5)
    assert torch.allclose(seen[0][1, :, 0, 0], (1 - mean) / deviation, atol=1e-5)


def test_the_head_is_the_models_own_classifier() -> None:
    made = world.parts(dataset=BYTES, model="timm/vit_tiny_patch16_224", model_head_init="zero")
    assert head.of(made.model) is made.model.get_classifier()  # type: ignore[operator]
    assert not made.model.eval()(torch.randn(2, 3, 32, 32)).any()


def test_weights_by_path_are_taken_except_another_head(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    there = world.parts(dataset=BYTES, model="timm/resnet10t", seed_model=9).model
    save_file(there.state_dict(), tmp_path / "weights.safetensors")
    given = {"model": "timm/resnet10t", "model_pretrained": str(tmp_path / "weights.safetensors")}
    same = world.parts(dataset=BYTES, **given).model
    assert all(torch.equal(mine, there.state_dict()[name]) for name, mine in same.state_dict().items())
    other = world.parts(dataset="synthetic/3x32x32_7_24_uint8", **given).model
    assert torch.equal(other.conv1[0].weight, there.conv1[0].weight)  # type: ignore[index,union-attr]
    assert other.fc.weight.shape == (7, 512)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "timm/resnet10x"}, "did you mean 'resnet10t'"),
        ({"model_options": {"no_such": 1}}, "no_such"),
        ({"dataset": "synthetic/9_2_8"}, "takes pictures"),
        ({"dataset": "synthetic/text8_9_8"}, "holds texts"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        world.parts(**{"dataset": BYTES, "model": "timm/resnet10t", **given})
    assert "\n" not in str(caught.value)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(world.parts(dataset=BYTES, model="tiny/lenet").model.state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(SpecError, match="holds weights of another model"):
        world.parts(dataset=BYTES, model="timm/resnet10t", model_pretrained=str(tmp_path / "w.safetensors"))


def test_weights_that_cannot_be_fetched_are_said() -> None:
    with pytest.raises(MissingError, match="weights of timm/resnet10t cannot be fetched"):
        world.parts(dataset=BYTES, model="timm/resnet10t", model_pretrained=True)
