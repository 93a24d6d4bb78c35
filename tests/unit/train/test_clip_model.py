from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import train_world as world
from hostler.errors import SpecError
from hostler.train.models import clip_model
from hostler.trainer import experiment_generator


@pytest.fixture
def pets(tmp_path: Path) -> dict[str, Any]:
    world.needs("open_clip")
    world.folder(tmp_path / "pets", {"train": 4, "test": 2})
    return {
        "dataset": "folder/pets", "data_dir": str(tmp_path), "model": "clip/tiny", "optim_alg": "adam",
        "base_lr": 0.003, "batch_size": 12,
    }  # fmt: skip


def moved(made: Any) -> set[str]:
    """The first words of the weights that some steps change."""
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    found = world.losses(made, 12)
    assert found[-1] < found[0]
    after = made.model.state_dict()
    return {name.split(".")[0] for name, value in before.items() if not torch.equal(value, after[name])}


def test_fine_tuning_begins_at_class_texts_and_trains_all(pets: dict[str, Any]) -> None:
    made = world.parts(**pets)
    assert isinstance(made.model, clip_model.Probe)
    lengths = made.model.head.weight.norm(dim=1)
    assert torch.allclose(lengths, lengths[0].expand(3), rtol=1e-4)  # directions, scaled alike
    assert moved(made) == {"tower", "head"}


def test_a_linear_probe_trains_the_head_alone(pets: dict[str, Any]) -> None:
    made = world.parts(**{**pets, "model": "clip/tiny/linear_probe", "base_lr": 0.1})
    assert moved(made) == {"head"}
    assert not made.model.train().tower.training  # type: ignore[union-attr]


def test_a_small_clip_learns_with_both_towers(pets: dict[str, Any]) -> None:
    made = world.parts(**{**pets, "model": "clip/tiny/two_towers"})
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    found = world.losses(made, 12)
    assert found[-1] < found[0]
    after = made.model.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert any(name.startswith("clip.visual.") for name in changed)
    assert any(name.startswith("clip.transformer.") for name in changed)


def test_zero_shot_is_a_row_of_the_unchanged_model(
    pets: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    asked = {**pets, "model": "clip/tiny/zero_shot", "train_length": 0, "output_dir": str(tmp_path / "out")}
    [row] = experiment_generator({**asked, "seed_model": 1, "seed_training": 2, "device": "cpu"})
    assert 0 <= row["test/last/accuracy"] <= 1
    assert (tmp_path / "out/stats.csv").read_text().count("\n") == 2


def test_zero_shot_says_what_both_towers_say(pets: dict[str, Any]) -> None:
    alone = world.parts(**{**pets, "model": "clip/tiny/zero_shot", "train_length": 0})
    both = world.parts(**{**pets, "model": "clip/tiny/two_towers"})
    x, _ = alone.batch(0)
    assert torch.allclose(alone.model.eval()(x), both.model.eval()(x), atol=1e-4)


def test_weights_of_a_whole_clip_and_a_part_are_accepted(pets: dict[str, Any], tmp_path: Path) -> None:
    import open_clip
    from safetensors.torch import save_file

    torch.manual_seed(7)
    whole = open_clip.CLIP(**clip_model.TINY)
    torch.save(whole.state_dict(), tmp_path / "clip.pt")
    mine = world.parts(**pets, model_pretrained=str(tmp_path / "clip.pt")).model
    assert torch.equal(mine.tower.conv1.weight, whole.visual.conv1.weight)  # type: ignore[union-attr]
    save_file(mine.state_dict(), tmp_path / "ours.safetensors")
    again = world.parts(**pets, seed_model=5, model_pretrained=str(tmp_path / "ours.safetensors")).model
    assert torch.equal(again.head.weight, mine.head.weight)  # type: ignore[union-attr]


def test_a_published_model_is_made_by_its_name() -> None:
    world.needs("open_clip")
    import open_clip

    made, code, width = clip_model._clip(open_clip, "vit_s_32_alt", world.config(model="clip/vit_s_32_alt"))
    assert made.visual.image_size == (224, 224)
    assert made.visual(torch.zeros(1, 3, 224, 224)).shape == (1, width)
    assert code(["a cat"]).shape == (1, 77)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "clip/vit_b_33"}, "did you mean 'vitb32'"),
        ({"model": "clip/tiny/zeroshot"}, "did you mean 'zero_shot'"),
        ({"model": "clip/tiny/zero_shot"}, "train_length: 0"),
        ({"image_size": 16}, "image_size: 32"),
        ({"model_options": {"vision": {}}}, "did you mean 'vision_cfg'"),
        ({"model_pretrained": True}, "no pretrained weights"),
        ({"model": "clip/tiny/two_towers", "dataset": "synthetic/3x32x32_2_8"}, "names of 2 classes"),
        ({"dataset": "synthetic/8_2_8"}, "takes pictures"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(pets: dict[str, Any], given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        world.parts(**{**pets, **given})
    assert "\n" not in str(caught.value)
