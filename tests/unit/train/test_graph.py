from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.graphs import graph, recording
from hostler.train.graphs.graph import Graph, wanted
from hostler.train.graphs.recording import differ

GPU, CPU = torch.device("cuda"), torch.device("cpu")


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({"model": "linear/bias"}, True),
        ({"model": "tiny/lenet", "compile": True}, True),
        ({"model": "tiny/lenet", "cuda_graph": False}, False),
        ({"model": "tiny/lenet", "compile": True, "cuda_graph": False}, False),
        ({"model": "tiny/lenet", "loss": "my.py:loss"}, False),
        ({"model": "tiny/lenet", "loss": "my.py:loss", "compile": True}, True),
        ({"model": "timm/vit_small_patch16_224"}, False),
        ({"model": "timm/vit_small_patch16_224", "compile": True}, True),
        ({"model": "timm/vit_small_patch16_224", "compile": "reduce-overhead"}, True),
        ({"model": "my.py:Net"}, False),
        ({"model": "my.py:Net", "compile": True}, True),
        ({"model": "my.py:Net", "compile": "max-autotune"}, True),
        ({"model": "tiny/my.py:Net"}, False),
        ({"model": "my.py:Net", "cuda_graph": True}, True),
        ({"model": "linear", "amp": "fp16", "compile": True}, False),
        ({"model": "linear", "amp": "bf16"}, True),
        ({"model": "linear", "on_out_of_memory": "halve"}, False),
        ({"model": "linear", "optim_alg": "my.py:Optimizer", "compile": True}, False),
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
        ({}, CPU, 1, "cuda_graph: true, but the device is cpu"),
        ({}, GPU, 2, "cuda_graph: true, but 2 ranks train together"),
        ({"amp": "fp16"}, GPU, 1, "cuda_graph: true, but amp: fp16 looks at the gradients after each step"),
        ({"optim_alg": "my.py:Optimizer"}, GPU, 1, "cuda_graph: true, but optim_alg is my.py:Optimizer"),
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

    def record(step: Callable[[], Any], state: Callable[[], Iterable[torch.Tensor]], **_: Any) -> Any:
        for _number in range(3):
            given = step()
        found.extend(state())
        return step, given

    def update(x: torch.Tensor, y: torch.Tensor) -> graph.Scores:
        return model(x).sum(), y.sum()

    monkeypatch.setattr(graph, "record", record)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Graph(optimizer, model, update, 3)(torch.ones(3, 2), torch.ones(3))
    return found


def test_what_a_model_computes_once_for_all_outlasts_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Own(keeps=True)
    assert not any(one is model.mask for one in taken(monkeypatch, model))
    assert model.mask.shape == (3, 2)


def test_model_that_replaces_a_buffer_each_step_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="another tensor in the place of a buffer") as caught:
        taken(monkeypatch, Own(keeps=False))
    assert caught.value.hint == "cuda_graph: false"


class Trained:
    """A training whose recorded step is `recorded`: there is no GPU that could record its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, recorded: Callable[[Trained], None]) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Linear(4, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.said: list[str] = []
        self.plain = 0
        self._scores = torch.zeros(()), torch.zeros(())

        def record(
            step: Callable[[], Any], state: Callable[[], Iterable[torch.Tensor]], *, drop: Callable[[], None]
        ) -> Any:
            def replay() -> None:
                recorded(self)

            return replay, self._scores

        monkeypatch.setattr(graph, "record", record)
        self.graph = Graph(
            self.optimizer, self.model, self.update, 3, asked=False, known=False, say=self.said.append
        )
        self.graph._moved = False

    def update(self, x: torch.Tensor, y: torch.Tensor) -> graph.Scores:
        self.plain += 1
        self.optimizer.zero_grad()
        loss = (self.model(x)[:, 0] - y).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach(), y.sum()

    def replay(self) -> None:
        for one, given in zip(self._scores, self.update(self.graph._x, self.graph._y), strict=True):
            one.copy_(given)

    def weights(self) -> list[torch.Tensor]:
        return [one.detach().clone() for one in self.model.parameters()]


X, Y = torch.arange(6.0).view(3, 2) / 6, torch.ones(3)


def test_step_that_replays_to_the_bit_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trained(monkeypatch, Trained.replay)
    before, chance = one.weights(), torch.get_rng_state()
    assert one.graph._begin(X, Y)
    assert all(map(torch.equal, before, one.weights())), "nothing of the trial stays"
    assert not any(slot.any() for own in one.optimizer.state.values() for slot in own.values())
    assert torch.equal(chance, torch.get_rng_state()) and one.said == []


def test_step_that_replays_other_numbers_goes_on_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trained(monkeypatch, lambda trained: None)
    before = one.weights()
    assert not one.graph._begin(X, Y) and all(map(torch.equal, before, one.weights()))
    assert one.said == [
        "goes on with plain steps; the step is not recorded as a CUDA graph: "
        "recorded steps have other numbers than plain ones"
    ]
    one.graph(X, Y)
    assert one.graph.given_up and not all(map(torch.equal, before, one.weights()))


def test_memory_that_ends_while_recording_leaves_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(trained: Trained) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    one = Trained(monkeypatch, full)
    before = one.weights()
    assert not one.graph._begin(X, Y) and all(map(torch.equal, before, one.weights()))
    assert "does not fit in the device's memory" in one.said[0]


def test_error_of_the_model_itself_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trained(monkeypatch, Trained.replay)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        one.graph(torch.ones(3, 5), Y)
    assert one.said == []


def test_first_steps_are_watched_and_their_effect_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trained(monkeypatch, Trained.replay)
    one.model.register_forward_hook(lambda *_: None)
    one.graph(X, Y)
    assert one.graph.given_up and one.plain == 1, "no step was made for the trial"
    assert one.said[0].endswith("recorded as a CUDA graph: the model has a hook")


def test_batch_of_another_shape_goes_plain_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trained(monkeypatch, Trained.replay)
    for _ in range(graph.PLAIN + 1):
        one.graph(X, Y)
    seen = one.plain
    one.graph(X[:2], Y[:2])
    assert one.said == [] and one.plain == seen + 1, "the end of a pass is nothing to speak of"
    for _ in range(2):
        with pytest.raises(RuntimeError):
            one.graph(torch.ones(3, 5), Y)
    assert one.said == ["the step is recorded for batches of 3×2: one of 3×5 goes plain"]


def test_numbers_may_differ_as_far_as_plain_ones_do() -> None:
    plain, near, far = ([torch.tensor([value])] for value in (1.0, 1.001, 1.1))
    assert not differ(plain, [torch.tensor([1.0])], lambda: far)
    assert differ(plain, near, lambda: plain)
    assert not differ(plain, near, lambda: near)
    assert differ(plain, far, lambda: near)
    nan = [torch.tensor([float("nan")])]
    assert not differ(nan, nan, lambda: nan)


class Recorded:
    """In the place of a CUDA graph."""


def test_recordings_share_a_pool_while_one_of_them_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    handles = iter(range(9))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: next(handles))
    monkeypatch.setattr(recording, "_pools", {})
    first, second, other = Recorded(), Recorded(), Recorded()
    for one in (first, second):
        pool = recording._pool(0)
        pool.graphs.add(one)
        assert pool.handle == 0
    recording._pool(1).graphs.add(other)
    del first, one
    assert recording._pool(0).handle == 0
    del second
    assert recording._pool(0).handle == 2, "torch takes no graph into a pool that has ended"
    assert recording._pool(1).handle == 1, "that of another device"
