"""A small GPT, a small CLIP, and pictures from files, read ahead or by loader processes, killed anywhere, end
with the weights of one never killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_trainer_exact import exact

import tar_world
import train_world

GPT = {
    "dataset": "synthetic/text12_30_96", "model": "hf/causal/gpt2",
    "model_options": {"n_layer": 1, "n_embd": 16, "n_head": 2}, "train_length": 3,
}  # fmt: skip
CLIP = {
    "dataset": "folder/pets", "model": "clip/tiny/two_towers", "base_lr": 0.002, "train_length": 3,
    "augment": ["randaugment", "flip", "resizedcrop_0.5"],
    "model_options": {"text_cfg": {"layers": 1}, "vision_cfg": {"patch_size": 16, "patch_dropout": 0.25}},
}  # fmt: skip
FILES = {
    "dataset": "folder/pets", "model": "timm/test_resnet", "image_size": 24, "data_on_device": False,
    "augment": ["crop_2", "randaugment_2_15", "cutmix"], "base_lr": 0.01, "train_length": 3,
}  # fmt: skip
READ = {
    "model": "tiny/lenet", "data_on_device": False, "num_workers": 2, "augment": ["crop_2", "flip"],
    "base_lr": 0.01, "train_length": 3,
}  # fmt: skip
BYTES = {"dataset": "bytes/raw", **READ}
SHARDS = {"dataset": "tar/shards", "image_size": 12, **READ}
TRAININGS = {"gpt": GPT, "clip": CLIP, "files": FILES, "bytes": BYTES, "shards": SHARDS}
LIBRARIES = {"gpt": "transformers", "clip": "open_clip", "files": "timm", "bytes": "PIL", "shards": "PIL"}


def training(tmp_path: Path, name: str) -> dict[str, Any]:
    train_world.needs(LIBRARIES[name])
    if name == "bytes":
        tar_world.raw(tmp_path / "data/raw", {"train": 96, "test": 9})
    elif name == "shards":
        tar_world.write(tmp_path / "data/shards", tar_world.dataset(train=12))
    else:
        train_world.folder(tmp_path / "data/pets", {"train": 32, "test": 3})
    return {**TRAININGS[name], "data_dir": str(tmp_path / "data")}


@pytest.mark.timeout(1200)
def test_small_language_model_killed_at_random_steps_is_bit_exact(tmp_path: Path) -> None:
    exact(tmp_path, "adam", 3, **training(tmp_path, "gpt"))


@pytest.mark.soak
@pytest.mark.parametrize("name", TRAININGS)
def test_any_model_killed_at_twenty_random_steps_is_bit_exact(tmp_path: Path, name: str) -> None:
    longer = {"train_length": 20}  # twenty attempts must find something left to do
    exact(tmp_path, "adam", 20, **{**training(tmp_path, name), **longer})
