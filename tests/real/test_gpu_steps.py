"""Steps of the trainer recorded as CUDA graphs: the same numbers as without, for whatever a step does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hostler.errors import SpecError
from hostler.trainer import experiment_generator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU on this machine"),
]

OWN = """
import torch

class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.first, self.last = torch.nn.Linear(20, 32), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.last(torch.nn.functional.dropout(self.first(x).relu(), 0.5, self.training))

class Looks(Net):
    def forward(self, x):
        return super().forward(x) if float(x.sum()) < 1e9 else x
"""
BASE: dict[str, Any] = {
    "dataset": "synthetic/20_4_100",
    "batch_size": 16,  # the last batch of a pass has 4
    "train_length": 3,
    "base_lr": 0.01,
    "lr_schedule": "cosine",
    "seed_model": 1,
    "seed_training": 2,
    "deterministic": True,
}


def weights(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> dict[str, torch.Tensor]:
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "own.py").write_text(OWN)
    for epoch in experiment_generator({**BASE, **given}):
        last = epoch
    return {name: one.detach().cpu().clone() for name, one in last.model.state_dict().items()}


@pytest.mark.parametrize(
    "given",
    [
        {"model": "linear/bias"},
        {"model": "own.py:Net", "optim_alg": "adamw", "weight_decay": 0.1},
        {"model": "own.py:Net", "optim_alg": "amsgrad", "clip_grad_norm": 0.1},
        {"model": "own.py:Net", "momentum": 0, "grad_accum_steps": 4, "averaging": "ema_0.9"},
        {"model": "own.py:Net", "amp": "bf16", "compile": True},
        {"model": "tiny/resnet_18", "dataset": "synthetic/3x8x8_4_100", "augment": ["flip", "mixup"]},
    ],
    ids=lambda given: "-".join(str(one) for one in given.values()),
)
def test_recorded_step_has_the_numbers_of_a_plain_step(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = weights(tmp_path / "plain", monkeypatch, cuda_graph=False, **given)
    recorded = weights(tmp_path / "recorded", monkeypatch, cuda_graph=True, **given)
    again = weights(tmp_path / "again", monkeypatch, cuda_graph=True, **given)
    for name, one in plain.items():
        torch.testing.assert_close(recorded[name], one, rtol=1e-4, atol=1e-5, msg=name)
        assert torch.equal(recorded[name], again[name]), name


def test_model_that_synchronises_in_its_step_is_named_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SpecError, match="cannot be recorded as a CUDA graph") as caught:
        weights(tmp_path / "looks", monkeypatch, cuda_graph=True, model="own.py:Looks")
    assert caught.value.hint == "cuda_graph: false"
