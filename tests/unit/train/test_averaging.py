from __future__ import annotations

import pytest
import torch

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.parts import Average


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))


def averaged(name: str, values: list[float]) -> tuple[float, int]:
    model = Model()
    average = Average(name, model)
    for count, value in enumerate(values, 1):
        with torch.no_grad():
            model.weight.fill_(value)
            model.seen.fill_(count)
        average.update(model)
    return float(average.model.weight), int(average.model.seen)


def test_g_is_the_weight_of_the_old_average() -> None:
    assert averaged("ema_0.9", [1.0, 2.0])[0] == pytest.approx(0.9 * 1 + 0.1 * 2)


def test_ema_without_a_number_is_099() -> None:
    assert averaged("ema", [1.0, 2.0])[0] == pytest.approx(0.99 + 0.02)


def test_poly_0_is_the_plain_mean() -> None:
    assert averaged("poly_0", [1.0, 2.0, 6.0])[0] == pytest.approx(3.0)


def test_poly_weighs_the_new_model_by_eta_and_the_step() -> None:
    second = 1.0 + (4 / 5) * (2.0 - 1.0)
    assert averaged("poly_3", [1.0, 2.0, 4.0])[0] == pytest.approx(second + (4 / 6) * (4.0 - second))


def test_whole_numbers_are_copied() -> None:
    assert averaged("ema_0.9", [1.0, 2.0, 3.0])[1] == 3


def test_it_goes_on_from_its_state() -> None:
    model = Model()
    one, two = Average("poly_0", model), Average("poly_0", model)
    for value in (1.0, 2.0, 3.0):
        with torch.no_grad():
            model.weight.fill_(value)
        one.update(model)
    two.load_state_dict(one.state_dict())
    with torch.no_grad():
        model.weight.fill_(6.0)
    two.update(model)
    assert float(two.model.weight) == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["ema_1.5", "ema_nan", "poly", "poly_x", "poly_inf", "poly_-1", "swa"])
def test_what_cannot_be_is_an_error(name: str) -> None:
    with pytest.raises(SpecError, match="averaging"):
        Average(name, Model())
    with pytest.raises(SpecError, match="averaging"):
        Config(averaging=name)


def test_weights_with_two_names_are_averaged_once() -> None:
    model = torch.nn.ModuleDict({"into": torch.nn.Embedding(3, 2), "out": torch.nn.Linear(2, 3, bias=False)})
    model["out"].weight = model["into"].weight
    average = Average("ema_0.9", model)
    for value in (0.0, 1.0):
        torch.nn.init.constant_(model["into"].weight, value)
        average.update(model)
    assert torch.allclose(average.model["out"].weight, torch.full((3, 2), 0.1))  # type: ignore[index]
