from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import train_world as world
from hostler.errors import DamagedError, HostlerError, MissingError, SpecError
from hostler.train.data import sources

FILMS = "text,label\n" + "".join(f"a good film {n},good\na bad film {n},bad\n" for n in range(6))


@pytest.fixture(autouse=True)
def library() -> None:
    world.needs("datasets")


def load(root: Path, name: str, **given: Any) -> Any:
    return sources.load(world.config(dataset=f"hf/{name}", data_dir=str(root), **given))


@pytest.fixture
def films(tmp_path: Path) -> Path:
    (tmp_path / "films").mkdir()
    for split in ("train", "test"):
        (tmp_path / "films" / f"{split}.csv").write_text(FILMS)
    return tmp_path


def test_texts_with_classes_become_rows_of_bytes(films: Path) -> None:
    data = load(films, "films", text_length=16, model="hf/text/bert")
    assert data.classes == ("bad", "good")
    assert (data.vocabulary, data.padding, data.input_shape) == (257, 256, (16,))
    first = data.splits["train"].x[0].tolist()
    assert bytes(first[:13]) == b"a good film 0"
    assert first[13:] == [256] * 3
    assert data.splits["train"].y.tolist() == [1, 0] * 6


def test_texts_for_a_language_model_become_blocks_whose_targets_follow(films: Path) -> None:
    data = load(films, "films", text_length=8, model="hf/causal/gpt2")
    train = data.splits["train"]
    assert bytes(train.x[0].tolist()) == b"a good f"
    assert bytes(train.y[0].tolist()) == b" good fi"
    assert train.x.flatten()[1:].tolist() == train.y.flatten()[:-1].tolist()
    assert data.n_classes == data.vocabulary == 257
    assert data.padding is None


def test_a_tokenizer_of_ones_own_codes_the_texts(films: Path) -> None:
    world.needs("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[UNK]": 1, "a": 2, "good": 3, "bad": 4, "film": 5}
    inside = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    inside.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=inside, pad_token="[PAD]", unk_token="[UNK]")
    made.save_pretrained(films / "words")
    data = load(films, "films", text_length=5, model="hf/text/bert", tokenizer=str(films / "words"))
    assert data.vocabulary == 6
    assert data.splits["train"].x[:2].tolist() == [[2, 3, 5, 1, 0], [2, 4, 5, 1, 0]]


def test_saved_pictures_with_classes_are_a_data_set(tmp_path: Path) -> None:
    import datasets

    chance, names = random.Random(1), list(world.COLOURS)
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})

    def split(count: int) -> Any:
        rows = [
            {"image": world.picture(name, chance, (8, 8)), "label": name}
            for _ in range(count)
            for name in names
        ]
        return datasets.Dataset.from_list(rows, features=kinds)

    made = datasets.DatasetDict({"train": split(4), "test": split(1)})
    made.save_to_disk(str(tmp_path / "pets"))
    data = load(tmp_path, "pets")
    assert data.classes == tuple(names)
    train = data.splits["train"]
    assert train.x.float().mean((2, 3)).argmax(1).tolist() == train.y.tolist()


def test_targets_may_be_numbers_and_inputs_several_columns(tmp_path: Path) -> None:
    rows = "question,answer,points,id\nwhy,so,0.5,x\nhow,thus,1.5,y\n"
    (tmp_path / "quiz.csv").write_text(rows)
    asked = {"data_input": "question, answer", "data_target": "points", "text_length": 8}
    data = load(tmp_path, "quiz.csv", data_splits_map={"train": "train"}, model="hf/text/bert", **asked)
    assert data.n_classes == 0
    assert data.splits["train"].y.tolist() == [0.5, 1.5]
    assert bytes(data.splits["train"].x[0].tolist()[:6]) == b"why\nso"


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"data_splits_map": {"train": "train", "test": "tets"}}, SpecError, "did you mean 'test'"),
        ({"data_input": "txet"}, SpecError, "did you mean 'text'"),
        ({"data_target": "lable"}, SpecError, "did you mean 'label'"),
        ({"model": "hf/causal/gpt2", "text_length": 9999}, SpecError, "too few"),
        ({"tokenizer": "no-such"}, MissingError, "no tokenizer named"),
        ({"dataset": "hf/flims", "data_download": False}, MissingError, "is not in"),
        ({"dataset": "hf/no-such-owner/no-such-name"}, MissingError, "cannot be fetched"),
    ],
)
def test_what_is_not_there_is_said(
    films: Path, given: dict[str, Any], kind: type[HostlerError], said: str
) -> None:
    asked = {"dataset": "hf/films", "data_dir": str(films), "model": "hf/text/bert", **given}
    with pytest.raises(kind, match=said) as caught:
        sources.load(world.config(**asked))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.json", '{"text": "a", "label": 1}\n{"text": ', "JSON parse error"),
        ("train.csv", "text,label\n", "no data"),
        ("train.csv", "", "No columns"),
        ("train.doc", "text", "holds no data set"),
    ],
)
def test_damaged_or_empty_file_is_reported_in_one_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / name).write_text(text)
    with pytest.raises((DamagedError, SpecError), match=said) as caught:
        load(tmp_path, "films", data_splits_map={"train": "train"}, model="hf/text/bert")
    assert "\n" not in str(caught.value)


def test_a_class_that_is_missing_is_said(films: Path) -> None:
    (films / "films/test.csv").write_text("text,label\na film,good\nanother,\n")
    with pytest.raises((DamagedError, SpecError), match="without"):
        load(films, "films", model="hf/text/bert")
