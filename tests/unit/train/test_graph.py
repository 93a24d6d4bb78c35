from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from hostler.errors import SpecError
from hostler.train import graph
from hostler.train.config import Config
from hostler.train.graph import Graph, wanted

GPU, CPU = torch.device("cuda"), torch.device("cpu")


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({"model": "linear/bias"}, True),
        ({"model": "tiny/lenet", "compile": True}, True),
        ({"model": "tiny/lenet", "cuda_graph": False}, False),
        ({"model": "tiny/lenet", "loss": "my.py:loss"}, False),
        ({"model": "timm/vit_small_patch16_224"}, False),
        ({"model": "timm/vit_small_patch16_224", "compile": True}, False),
        ({"model": "timm/vit_small_patch16_224", "compile": "reduce-overhead"}, True),
        ({"model": "my.py:Net"}, False),
        ({"model": "my.py:Net", "compile": "max-autotune"}, False),
        ({"model": "tiny/my.py:Net"}, False),
        ({"model": "tiny/lenet", "loss": "my.py:loss", "compile": "reduce-overhead"}, False),
        ({"model": "my.py:Net", "cuda_graph": True}, True),
        ({"model": "linear", "amp": "fp16"}, False),
        ({"model": "linear", "amp": "bf16"}, True),
        ({"model": "linear", "on_out_of_memory": "halve"}, False),
        ({"model": "linear", "optim_alg": "my.py:Optimizer"}, False),
    ],
)
def test_step_is_recorded_where_it_is_known_to_stay_constant(given: dict[str, Any], recorded: bool) -> None:
    assert wanted(Config(**given), GPU, 1) is recorded


def test_nothing_is_recorded_without_a_gpu_or_with_several_ranks() -> None:
    assert not wanted(Config(), CPU, 1)
    assert not wanted(Config(), GPU, 2)


@pytest.mark.parametrize(
    ("given", "device", "ranks", "said"),
    [
        ({}, CPU, 1, "cuda_graph: true, and the device is cpu"),
        ({}, GPU, 2, "cuda_graph: true, and 2 ranks train together"),
        ({"amp": "fp16"}, GPU, 1, "cuda_graph: true, and amp: fp16 looks at the gradients after each step"),
        ({"optim_alg": "my.py:Optimizer"}, GPU, 1, "cuda_graph: true, and optim_alg is my.py:Optimizer"),
    ],
)
def test_what_cannot_be_recorded_is_said(
    given: dict[str, Any], device: torch.device, ranks: int, said: str
) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        wanted(Config(cuda_graph=True, **given), device, ranks)
    assert "cuda_graph: false" in caught.value.hint


class Own(torch.nn.Module):
    """`keeps`: what it computes once for all; else it is another tensor in each step."""

    mask: torch.Tensor

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.weight, self._keeps = torch.nn.Parameter(torch.ones(2)), keeps
        self.register_buffer("mask", torch.zeros(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask.shape != x.shape or not self._keeps:
            self.mask = torch.ones_like(x)
        return x * self.weight * self.mask


def taken(monkeypatch: pytest.MonkeyPatch, model: Own) -> list[torch.Tensor]:
    """What a recording of its step would put back; there is no GPU to record with."""
    found: list[torch.Tensor] = []

    def record(step: Callable[[], Any], state: Callable[[], Iterable[torch.Tensor]]) -> Any:
        for _ in range(3):
            given = step()
        found.extend(state())
        return step, given

    def update(x: torch.Tensor, y: torch.Tensor) -> graph.Scores:
        return model(x).sum(), y.sum()

    monkeypatch.setattr(graph, "record", record)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Graph(optimizer, model, update, 3)(torch.ones(3, 2), torch.ones(3), 0.1)
    return found


def test_what_a_model_computes_once_for_all_outlasts_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Own(keeps=True)
    assert not any(one is model.mask for one in taken(monkeypatch, model))
    assert model.mask.shape == (3, 2)


def test_model_that_replaces_a_buffer_each_step_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="another tensor in the place of a buffer") as caught:
        taken(monkeypatch, Own(keeps=False))
    assert caught.value.hint == "cuda_graph: false"
