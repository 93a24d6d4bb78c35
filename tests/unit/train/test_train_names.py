from __future__ import annotations

from importlib.util import find_spec

import pytest

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.data import augment, sources, synthetic
from hostler.train.models import registry

CONFIG = Config(dataset="synthetic/1x8x8_2_8", model="tiny/lenet")


def test_every_source_and_every_family_that_is_named_is_there() -> None:
    assert all(find_spec(f"hostler.train.data.{name}") for name in sources.SOURCES.values())
    assert all(find_spec(f"hostler.train.models.{name}") for name in registry.FAMILIES.values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dataset": "torchvision/cifar10"}, "there is no dataset"),
        ({"dataset": "libsm/a9a"}, "did you mean 'libsvm'"),
    ],
)
def test_a_dataset_that_is_not_there_is_said(changed: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        sources.load(CONFIG.but(**changed))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "timm/resnet18"}, "there is no model"),
        ({"model": "tiny/lenett"}, "there is no model"),
        ({"model_pretrained": True}, "no pretrained weights of tiny/lenet"),
    ],
)
def test_a_model_that_is_not_there_is_said(changed: dict[str, object], said: str) -> None:
    data = synthetic.load(CONFIG, "1x8x8_2_8")
    with pytest.raises(SpecError, match=said):
        registry.build(CONFIG.but(**changed), data)


def test_an_augmentation_that_is_not_there_is_said() -> None:
    with pytest.raises(SpecError, match="there is no augmentation 'randaugment'"):
        augment.check(["randaugment"])
