"""`file.py:name` for model, dataset, loss, optimiser and transform."""

from __future__ import annotations

import pytest
import torch

from hostler.errors import HostlerError, SpecError
from hostler.train import custom
from small_trainings import Place, place, same

__all__ = ["place"]
MY = """
import random
import torch
from hostler.train.data.split import Arrays, Data

class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.layer = torch.nn.Linear(6, data.n_classes)
    def forward(self, x):
        return self.layer(x)

def data(config):
    x, y = torch.linspace(-1, 1, 6 * 30).reshape(30, 6), torch.arange(30) % 3
    return Data({"train": Arrays(x, y), "test": Arrays(x, y)}, (6,), 3)

def empty(config):
    found = data(config)
    nothing = Arrays(torch.zeros(0, 6), torch.zeros(0).long())
    return Data({"train": found.splits["train"], "test": nothing}, (6,), 3)

def below(config):
    found = data(config).splits["train"]
    return Data({"train": Arrays(found.x, found.y - 1)}, (6,), 3)

def narrow(config):
    found = data(config).splits["train"]
    return Data({"train": found, "test": Arrays(found.x[:, :4], found.y)}, (6,), 3)

class Pair(Net):
    def forward(self, x):
        return x, x

class Nothing(Net):
    def __init__(self, config, data):
        super().__init__(config, data)
        self.requires_grad_(False)

def of_one(x):
    return x

three = 3

def raises(out, target):
    raise KeyError("mine")

def no_train(config):
    return Data({"test": data(config).splits["test"]}, (6,), 3)

def loss(out, target):
    return torch.nn.functional.cross_entropy(out, target)

class Smooth:
    def __init__(self, config):
        self.much = config.label_smoothing
    def __call__(self, out, target):
        return torch.nn.functional.cross_entropy(out, target) * 2

def per_example(out, target):
    return torch.nn.functional.cross_entropy(out, target, reduction="none")

def optimizer(config, model):
    return torch.optim.SGD(model.parameters(), lr=1.0)

def no_optimizer(config, model):
    return model

class Plain(torch.optim.SGD):
    pass

def double(x, training):
    return torch.cat([x, x])

def noisy(x, training):
    return x + torch.randn(x.shape) * random.random() if training else x
"""


@pytest.fixture(autouse=True)
def mine(place: Place) -> None:
    (place.folder / "my.py").write_text(MY)


def test_a_model_and_a_dataset(place: Place) -> None:
    place.train(model="my.py:Net", dataset="my.py:data")
    assert place.weights()["layer.weight"].shape == (3, 6)


def test_a_loss_that_is_the_same_trains_the_same(place: Place) -> None:
    place.train()
    plain = place.weights()
    place.train(loss="my.py:loss")
    assert same(plain, place.weights())


def test_a_class_of_losses_is_made_with_the_config(place: Place) -> None:
    place.train(base_lr=0.2)
    plain = place.weights()
    place.train(base_lr=0.1, loss="my.py:Smooth")
    assert all(torch.allclose(plain[name], value) for name, value in place.weights().items())


@pytest.mark.parametrize("name", ["optimizer", "Plain"])
def test_an_optimizer_gets_its_rate_from_the_schedule(place: Place, name: str) -> None:
    place.train(lr_schedule="cosine")
    plain = place.weights()
    place.train(optim_alg=f"my.py:{name}", lr_schedule="cosine")
    assert same(plain, place.weights())


def test_transform_is_for_all_splits_and_the_model_fits_it(place: Place) -> None:
    place.train(transform="my.py:double")
    assert place.weights()["1.weight"].shape == (3, 12)


@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_random_draws_are_independent_of_the_worker_count(place: Place, workers: int) -> None:
    place.train(transform="my.py:noisy", num_workers=1, train_length=1)
    first = place.weights()
    place.train(transform="my.py:noisy", num_workers=workers, train_length=1)
    assert same(first, place.weights())
    place.train(train_length=1)
    assert not same(first, place.weights())


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("loss", "my.py:per_example", "gave \\(8,\\).*the mean of the batch"),
        ("optim_alg", "my.py:no_optimizer", "gave Sequential"),
        ("optim_alg", "my.py:optimiser", "did you mean 'optimizer'"),
        ("loss", "mine.py:loss", "mine.py does not exist"),
        ("model", "my.py:loss", "gave|argument"),
        ("dataset", "my.py:empty", "split 'test' of my.py:empty has no examples"),
        ("dataset", "my.py:no_train", "has no split train"),
        ("dataset", "my.py:below", "classes from -1 to 1"),
        ("dataset", "my.py:narrow", "cannot take inputs of the shape \\(4,\\)"),
        ("model", "my.py:Pair", "gave tuple"),
        ("model", "my.py:Nothing", "no parameters to train"),
        ("model", "my.py:three", "is int, which cannot be called"),
        ("optim_alg", "my.py:of_one", "called with config and model"),
        ("loss", "my.py:of_one", "called with outputs and targets"),
        ("transform", "my.py:of_one", "called with x and training"),
        ("transform", "my.py", "is not file.py:name"),
        ("transform", "my.py:nois", "did you mean 'noisy'"),
    ],
)
def test_mistakes_of_own_things_are_reported_before_the_training(
    place: Place, key: str, value: str, said: str
) -> None:
    with pytest.raises((HostlerError, AttributeError, TypeError), match=said):
        place.train(**{key: value})
    assert not (place.out / "stats.csv").exists()


def test_error_in_a_users_code_is_reported_as_the_users(place: Place) -> None:
    with pytest.raises(KeyError) as caught:
        place.train(loss="my.py:raises")
    line = MY.splitlines().index("def raises(out, target):") + 2
    assert custom.line_of(caught.value) == f"my.py:{line}"
    assert custom.line_of(KeyError()) is None


def test_invalid_python_file_is_reported_and_a_failed_one_reread(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "other.py").write_text("def (")
    with pytest.raises(SpecError, match=r"other.py:1 is not Python"):
        custom.find("other.py:loss")
    (place.folder / "other.py").write_text("import os\nos.environ['THERE']\ndef loss(out, target): pass")
    with pytest.raises(KeyError):
        custom.find("other.py:loss")
    monkeypatch.setenv("THERE", "now")
    assert custom.find("other.py:loss")


def test_word_that_names_neither_loss_nor_place_is_an_error(place: Place) -> None:
    with pytest.raises(
        SpecError, match=r"loss: 'lgo' is not one of log, .*file.py:name \(did you mean 'log'"
    ):
        place.train(loss="lgo")
