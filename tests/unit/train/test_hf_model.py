from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import train_world as world
from hostler.errors import HostlerError, MissingError, SpecError
from hostler.train.folder import RunFolder

GPT = {"n_layer": 1, "n_embd": 32, "n_head": 2}
BERT = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
TEXTS = "synthetic/text12_40_64"
CAUSAL = {"dataset": TEXTS, "model": "hf/causal/gpt2", "model_options": GPT, "optim_alg": "adam"}


@pytest.fixture(autouse=True)
def library() -> None:
    world.needs("transformers")


@pytest.fixture
def films(tmp_path: Path) -> dict[str, Any]:
    """A config of texts with classes."""
    world.needs("datasets")
    rows = "text,label\n" + "".join(f"a good film {n},1\na bad film {n},0\n" for n in range(6))
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text(rows)
    return {
        "dataset": f"hf/{tmp_path}", "data_dir": str(tmp_path), "model": "hf/text/bert",
        "model_options": BERT, "text_length": 20, "optim_alg": "adam", "base_lr": 0.01,
    }  # fmt: skip


def test_a_small_gpt_learns_the_next_token() -> None:
    made = world.parts(**CAUSAL, base_lr=0.01)
    found = world.losses(made, 20)
    assert found[0] > 3
    assert found[-1] < found[0] - 1


def test_it_does_not_see_what_comes() -> None:
    model = world.parts(**CAUSAL).model.eval()
    x = torch.arange(12)[None]
    changed = torch.where(torch.arange(12) < 6, x, 39)
    assert torch.allclose(model(x)[:, :6], model(changed)[:, :6], atol=1e-5)
    assert not torch.allclose(model(x)[:, 6:], model(changed)[:, 6:], atol=1e-3)


def test_a_small_classifier_learns_texts(films: dict[str, Any]) -> None:
    found = world.losses(world.parts(**films), 20)
    assert found[-1] < found[0] / 2


def test_what_fills_a_text_up_is_not_looked_at(films: dict[str, Any]) -> None:
    model = world.parts(**films).model.eval()
    short = torch.randint(0, 256, (2, 8))
    filled = torch.cat([short, torch.full((2, 12), 256)], 1)
    assert torch.allclose(model(short), model(filled), atol=1e-5)


def test_a_model_from_a_folder_has_its_weights_where_asked(films: dict[str, Any], tmp_path: Path) -> None:
    there = world.parts(**films, seed_model=9).model
    there.body.save_pretrained(tmp_path / "saved")  # type: ignore[operator,union-attr]
    asked = {**films, "model": f"hf/text/{tmp_path / 'saved'}", "model_options": {}}
    names = there.state_dict()
    mine = world.parts(**asked, model_pretrained=True).model.state_dict()
    assert all(torch.equal(value, names[name]) for name, value in mine.items())
    fresh = world.parts(**asked).model.state_dict()
    assert not all(torch.equal(value, names[name]) for name, value in fresh.items())
    by_path = world.parts(**{**films, "model_pretrained": str(tmp_path / "saved")}).model.state_dict()
    assert all(torch.equal(value, names[name]) for name, value in by_path.items())


def test_trained_model_with_tied_weights_loads_again(tmp_path: Path) -> None:
    there = world.parts(**CAUSAL, seed_model=9)
    folder = RunFolder(tmp_path, there.config, leads=True)
    folder.save("model.safetensors", there.model)
    folder.close()
    mine = world.parts(**CAUSAL, model_pretrained=str(tmp_path)).model
    for name, value in mine.state_dict().items():
        assert torch.equal(value, there.model.state_dict()[name]), name


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"model": "hf/causal/gpt22"}, SpecError, "did you mean 'gpt2'"),
        ({"model": "hf/casual/gpt2"}, SpecError, "hf/causal/gpt2"),
        ({"model_options": {**GPT, "n_head": 3}}, SpecError, "divisible"),
        (
            {"model_options": {**GPT, "n_layers": 2}},
            SpecError,
            "no option 'n_layers'.*did you mean 'n_layer'",
        ),
        ({"model_options": {**GPT, "n_positions": 8}}, SpecError, "text_length: 8"),
        ({"model_options": {**GPT, "vocab_size": 30}}, SpecError, "knows 30 tokens"),
        ({"model": "hf/text/gpt2"}, SpecError, "next tokens"),
        ({"dataset": "synthetic/9_2_8"}, SpecError, "takes texts"),
        ({"model_head_init": "zero"}, SpecError, "wte.weight"),
        ({"model": "hf/causal/no/such", "model_pretrained": True}, MissingError, "are not available"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(given: dict[str, Any], kind: type[HostlerError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        world.parts(**{**CAUSAL, **given})
    assert "\n" not in str(caught.value)


def test_a_new_task_gets_a_head_of_its_own(films: dict[str, Any], tmp_path: Path) -> None:
    there = world.parts(**films, seed_model=9).model
    there.body.save_pretrained(tmp_path / "saved")  # type: ignore[operator,union-attr]
    rows = (tmp_path / "train.csv").read_text() + "a film,2\n"
    (tmp_path / "train.csv").write_text(rows)
    asked = {**films, "model": f"hf/text/{tmp_path / 'saved'}", "model_options": {}, "model_pretrained": True}
    mine = world.parts(**asked).model
    assert mine.body.classifier.weight.shape == (3, 32)  # type: ignore[union-attr]
    body = {name: value for name, value in mine.state_dict().items() if ".bert." in name}
    assert body
    assert all(torch.equal(value, there.state_dict()[name]) for name, value in body.items())


def test_weights_of_another_kind_are_refused(films: dict[str, Any], tmp_path: Path) -> None:
    world.parts(**films).model.body.save_pretrained(tmp_path / "saved")  # type: ignore[operator,union-attr]
    world.parts(**CAUSAL).model.body.save_pretrained(tmp_path / "gpt")  # type: ignore[operator,union-attr]
    shutil.copy(tmp_path / "gpt/model.safetensors", tmp_path / "saved/model.safetensors")
    asked = {**films, "model": f"hf/text/{tmp_path / 'saved'}", "model_options": {}, "model_pretrained": True}
    with pytest.raises(SpecError, match="holds weights of another model"):
        world.parts(**asked)


def test_weights_of_another_size_are_refused(films: dict[str, Any], tmp_path: Path) -> None:
    world.parts(**films).model.body.save_pretrained(tmp_path / "saved")  # type: ignore[operator,union-attr]
    wider = {**films, "model": f"hf/text/{tmp_path / 'saved'}", "model_options": {"intermediate_size": 96}}
    with pytest.raises(SpecError, match="holds weights of another model"):
        world.parts(**wider, model_pretrained=True)
