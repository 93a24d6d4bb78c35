from __future__ import annotations

import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from hostler.errors import DamagedError, MachineError, MissingError, SpecError
from hostler.train import ranks
from hostler.train.config import Config
from hostler.train.data import augment, sources, synthetic
from hostler.train.models import registry, weights
from hostler.train.parts import assemble
from hostler.train.ranks import TrainRanks

CONFIG = Config(dataset="synthetic/1x8x8_2_8", model="tiny/lenet")


def test_every_source_and_every_family_that_is_named_is_there() -> None:
    assert all(find_spec(f"hostler.train.data.{name}") for name in sources.SOURCES.values())
    assert all(find_spec(f"hostler.train.models.{name}") for name in registry.FAMILIES.values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dataset": "torchvison/cifar10"}, "did you mean 'torchvision'"),
        ({"dataset": "libsm/a9a"}, "did you mean 'libsvm'"),
        ({"dataset": "npz"}, "'npz' names no data set"),
        ({"dataset": "synthetic/6_0_48"}, "has no classes"),
        ({"dataset": "synthetic/text0_5_48"}, "has no tokens"),
    ],
)
def test_a_dataset_that_is_not_there_is_said(changed: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        sources.load(CONFIG.but(**changed))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "tim/resnet18"}, "did you mean 'timm'"),
        ({"model": "tiny/lenett"}, "no model named tiny/lenett .did you mean 'tiny/lenet'"),
        ({"model": "tiny/restnet_18"}, "did you mean 'tiny/resnet_18'"),
        ({"model": "tiny/quux"}, "tiny/lenet, tiny/vgg_16"),
        ({"model_pretrained": True}, "tiny/lenet has no pretrained weights"),
        ({"model_options": {"depth": 3}}, "tiny/lenet has no model_options"),
    ],
)
def test_a_model_that_is_not_there_is_said(changed: dict[str, object], said: str) -> None:
    data = synthetic.load(CONFIG, "1x8x8_2_8")
    with pytest.raises(SpecError, match=said):
        registry.build(CONFIG.but(**changed), data)


def test_model_too_large_for_memory_is_reported_in_one_line() -> None:
    with pytest.raises(MachineError, match="synthetic/6_3_999999999999999 does not fit"):
        sources.load(CONFIG.but(dataset="synthetic/6_3_999999999999999"))
    with pytest.raises(MachineError, match="linear with 1000000000000 outputs does not fit"):
        registry.build(
            CONFIG.but(model="linear", model_output_dim=10**12), synthetic.load(CONFIG, "1x8x8_2_8")
        )


def test_weights_that_are_none_are_said(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(DamagedError, match="holds list, not weights"):
        weights.read(str(tmp_path / "list.pt"))


def test_a_device_that_computes_nothing_is_none() -> None:
    with pytest.raises(MachineError, match="there is no device meta here"):
        ranks.device_of(CONFIG.but(device="meta"))


def test_an_augmentation_that_is_not_there_is_said() -> None:
    with pytest.raises(SpecError, match="no augmentation named 'colour'"):
        augment.check(["colour"])


@pytest.mark.parametrize(
    ("changed", "module", "package"),
    [
        ({"dataset": "torchvision/mnist"}, "torchvision", "torchvision"),
        ({"dataset": "folder/pets"}, "PIL", "pillow"),
        ({"dataset": "hf/pets"}, "datasets", "datasets"),
        ({"dataset": "tfds/pets"}, "tensorflow_datasets", "tensorflow-datasets"),
        ({"model": "timm/resnet18"}, "timm", "timm"),
        ({"model": "hf/causal/gpt2", "dataset": "synthetic/text8_9_8"}, "transformers", "transformers"),
        ({"model": "clip/tiny"}, "open_clip", "open_clip_torch"),
    ],
)
def test_missing_library_is_reported_with_its_package(
    changed: dict[str, str], module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [name for name in sys.modules if name == module or name.startswith(f"{module}.")]
    for name in {*away, module}:
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(MachineError, match=f"needs {package}.*pip install {package}"):
        assemble(CONFIG.but(**changed), torch.device("cpu"), TrainRanks())


@pytest.mark.parametrize(
    ("name", "weights"),
    [("resnet_20", 269_722), ("resnet_18", 11_173_962), ("resnet_50", 23_520_842), ("wrn_16_4", 2_748_890)],
)
def test_networks_for_small_pictures_have_their_known_sizes(name: str, weights: int) -> None:
    data = synthetic.load(CONFIG, "3x32x32_10_10")
    with torch.device("meta"):
        made = registry.build(CONFIG.but(model=f"tiny/{name}"), data)
    assert sum(one.numel() for one in made.parameters()) == weights


def test_array_of_an_npz_with_a_bent_header_is_said(tmp_path: Path) -> None:
    data = io.BytesIO()
    np.save(data, np.zeros(3))
    with zipfile.ZipFile(tmp_path / "bent.npz", "w") as made:
        made.writestr("x_train.npy", data.getvalue().replace(b"{'", b"{{", 1))
        made.writestr("y_train.npy", data.getvalue())
    with pytest.raises(DamagedError, match=r"bent\.npz"):
        sources.load(
            CONFIG.but(dataset="npz/bent.npz", data_dir=str(tmp_path), data_splits_map={"train": "train"})
        )


def test_files_that_are_no_set_of_arrays_are_said(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.savez(tmp_path / "cut.npz", x_train=np.zeros(300))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:200])
    for name in ("one.npy", "cut.npz"):
        with pytest.raises(DamagedError, match=name):
            sources.load(CONFIG.but(dataset=f"npz/{name}", data_dir=str(tmp_path)))


@pytest.mark.parametrize("held", [b"", b"hello"])
def test_a_file_of_another_kind_is_no_set_of_arrays(tmp_path: Path, held: bytes) -> None:
    (tmp_path / "some.npz").write_bytes(held)
    with pytest.raises(DamagedError, match=r"some\.npz is not an npz file"):
        sources.load(CONFIG.but(dataset="npz/some.npz", data_dir=str(tmp_path)))


def test_the_nearest_name_of_arrays_is_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "digits.npz", x_train=np.zeros(3))
    with pytest.raises(MissingError, match=r"did you mean 'digits\.npz'"):
        sources.load(CONFIG.but(dataset="npz/digit.npz", data_dir=str(tmp_path)))


def test_depths_that_no_resnet_has_are_said() -> None:
    with pytest.raises(SpecError, match="not 19"):
        registry.build(CONFIG.but(model="tiny/resnet_19"), synthetic.load(CONFIG, "3x32x32_10_4"))
