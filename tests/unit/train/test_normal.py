from __future__ import annotations

import copy

import torch

from hostler.train.data.split import IMAGES, Arrays, Data
from hostler.train.models.normal import centre


def centred(device: str = "cpu") -> torch.nn.Module:
    data = Data(
        {"train": Arrays(torch.zeros(2, 3, 4, 4), torch.zeros(2))}, (3, 4, 4), 2, IMAGES, pixels=(-1.0, 1.0)
    )
    model = torch.nn.Sequential(torch.nn.Identity())
    centre(model, data, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    return model.to(device)


def test_mean_and_deviation_lie_where_the_model_does() -> None:
    model = centred("meta")
    assert {one.device.type for one in model.buffers()} == {"meta"}
    assert model(torch.zeros(2, 3, 4, 4, device="meta")).device.type == "meta"


def test_names_of_the_saved_weights_stay_as_they_were() -> None:
    assert not centred().state_dict()


def test_copies_of_the_model_scale_with_numbers_of_their_own() -> None:
    model = centred()
    other = copy.deepcopy(model)
    model.get_buffer("pixel_mean").fill_(9.0)
    black = other(torch.full((1, 3, 4, 4), -1.0))[0, :, 0, 0]
    expected = -torch.tensor([0.485, 0.456, 0.406]) / torch.tensor([0.229, 0.224, 0.225])
    assert torch.allclose(black, expected, atol=1e-5)
    assert other(torch.zeros(1, 3, 4, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16
