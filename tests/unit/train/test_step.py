from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from hostler.errors import MachineError, SpecError
from hostler.train import loss, optimizer
from hostler.train.config import Config
from hostler.train.step import Step

CPU = torch.device("cpu")


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))


def stepped(net: torch.nn.Module, count: int = 1, **given: Any) -> list[torch.Tensor]:
    """The weights after so many steps on one batch of 10."""
    config = Config(batch_size=10, **{"base_lr": 0.5, "momentum": 0.0, **given})
    step = Step(config, net, net, optimizer.build(config, net), loss.build(config), CPU)
    chance = torch.Generator().manual_seed(1)
    x, y = torch.randn(10, 5, generator=chance), torch.arange(10) % 3
    for _ in range(count):
        step(x, y, config.base_lr)
    return [one.detach().clone() for one in net.parameters()]


def close(one: list[torch.Tensor], other: list[torch.Tensor], within: float = 1e-6) -> bool:
    return all(torch.allclose(a, b, atol=within) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("pieces", [2, 5, 10])
def test_accumulated_gradients_are_those_of_the_whole_batch(pieces: int) -> None:
    assert close(stepped(model()), stepped(model(), grad_accum_steps=pieces))


def test_pieces_of_unequal_length_weigh_as_much_as_they_hold() -> None:
    net, whole = model(), stepped(model())
    config = Config(batch_size=12, grad_accum_steps=4, base_lr=0.5, momentum=0.0)
    step = Step(config, net, net, optimizer.build(config, net), loss.build(config), CPU)
    chance = torch.Generator().manual_seed(1)
    step(torch.randn(10, 5, generator=chance), torch.arange(10) % 3, 0.5)  # 3, 3, 3, 1
    assert close(whole, [one.detach() for one in net.parameters()])


def test_a_gradient_is_clipped_to_its_norm() -> None:
    before, net = [one.detach().clone() for one in model().parameters()], model()
    after = stepped(net, clip_grad_norm=1e-3, base_lr=1.0)
    moved = torch.cat([(a - b).flatten() for a, b in zip(after, before, strict=True)])
    assert float(moved.norm()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("alg", "kind", "more"),
    [
        ("sgd", torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        ("adam", torch.optim.Adam, {"betas": (0.9, 0.999)}),
        ("adamw", torch.optim.AdamW, {"betas": (0.9, 0.999)}),
        ("amsgrad", torch.optim.Adam, {"betas": (0.9, 0.999), "amsgrad": True}),
        ("amsgradw", torch.optim.AdamW, {"betas": (0.9, 0.999), "amsgrad": True}),
    ],
)
def test_an_algorithm_steps_as_torch_does(alg: str, kind: Any, more: dict[str, Any]) -> None:
    net = model()
    plain = kind(net.parameters(), lr=0.01, weight_decay=0.1, **more)
    chance = torch.Generator().manual_seed(1)
    x, y = torch.randn(10, 5, generator=chance), torch.arange(10) % 3
    for _ in range(3):
        plain.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        plain.step()
    wanted = [one.detach() for one in net.parameters()]
    given = {"weight_decay": 0.1, "weight_decay_biases": 0.1, "momentum": 0.9, "base_lr": 0.01}
    assert close(wanted, stepped(model(), 3, optim_alg=alg, **given))


def test_lamb_steps_as_far_as_each_parameter_is_long() -> None:
    net, means, squares = model(), list[torch.Tensor](), list[torch.Tensor]()
    chance = torch.Generator().manual_seed(1)
    x, y = torch.randn(10, 5, generator=chance), torch.arange(10) % 3
    for step in range(1, 4):
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        with torch.no_grad():
            for place, one in enumerate(net.parameters()):
                assert one.grad is not None
                if step == 1:
                    means.append(torch.zeros_like(one))
                    squares.append(torch.zeros_like(one))
                means[place] = 0.8 * means[place] + 0.2 * one.grad
                squares[place] = 0.95 * squares[place] + 0.05 * one.grad**2
                root = (squares[place] / (1 - 0.95**step)).sqrt() + 1e-6
                size = means[place] / (1 - 0.8**step) / root + 0.1 * one
                one -= 0.01 * one.norm() / size.norm() * size
    given = {"weight_decay": 0.1, "weight_decay_biases": 0.1, "momentum": "0.8,0.95", "base_lr": 0.01}
    found = stepped(model(), 3, optim_alg="lamb", ada_eps=1e-6, **given)
    assert close([one.detach() for one in net.parameters()], found)


def test_parameter_of_zeros_is_moved_by_lamb() -> None:
    net = torch.nn.Linear(5, 3)
    torch.nn.init.zeros_(net.weight)
    assert float(stepped(net, optim_alg="lamb", base_lr=0.1)[0].abs().max()) > 0


def test_both_betas_may_be_given() -> None:
    made = optimizer.build(Config(optim_alg="adam", momentum="0.8,0.95"), model())
    assert made.param_groups[0]["betas"] == (0.8, 0.95)


@pytest.mark.parametrize(
    ("alg", "momentum"), [("sgd", -1), ("sgd", "-0.5"), ("adam", 1), ("adamw", "0.9,1"), ("adam", "2,3")]
)
def test_a_momentum_that_cannot_be_is_said(alg: str, momentum: Any) -> None:
    with pytest.raises(SpecError, match="momentum"):
        optimizer.build(Config(optim_alg=alg, momentum=momentum), torch.nn.Linear(2, 2))


def test_only_biases_have_the_decay_of_biases() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    weights, biases = optimizer.build(Config(weight_decay=0.1, weight_decay_biases=0.2), net).param_groups
    assert [weights["weight_decay"], biases["weight_decay"]] == [0.1, 0.2]
    assert [len(weights["params"]), len(biases["params"])] == [2, 2]


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_is_near_full_precision(amp: str) -> None:
    assert close(stepped(model(), 3), stepped(model(), 3, amp=amp), 0.05)


def test_overflowing_fp16_gradient_skips_the_step_and_lowers_the_scale() -> None:
    net = model()
    config = Config(batch_size=10, amp="fp16", base_lr=1.0)
    step = Step(config, net, net, optimizer.build(config, net), loss.build(config), CPU)
    before = copy.deepcopy(net.state_dict())
    scale = step.scaler.get_scale()
    step(torch.full((10, 5), float("inf")), torch.arange(10) % 3, 1.0)
    assert step.scaler.get_scale() < scale
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_label_smoothing_is_torchs() -> None:
    out, y = torch.randn(4, 3), torch.arange(4) % 3
    smooth = loss.build(Config(label_smoothing=0.2))
    assert torch.equal(smooth(out, y), torch.nn.functional.cross_entropy(out, y, label_smoothing=0.2))


@pytest.mark.soak
def test_a_compiled_model_trains_as_one_that_is_not() -> None:
    net = model()
    config = Config(batch_size=10, base_lr=0.5, momentum=0.0, compile=True)
    step = Step(config, net, torch.compile(net), optimizer.build(config, net), loss.build(config), CPU)
    chance = torch.Generator().manual_seed(1)
    x, y = torch.randn(10, 5, generator=chance), torch.arange(10) % 3
    for _ in range(3):
        step(x, y, 0.5)
    assert close(stepped(model(), 3), [one.detach() for one in net.parameters()], 1e-5)


class Tight(torch.nn.Module):
    """Memory runs out beside a recorded step, and with `always` without one, too."""

    def __init__(self, *, always: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.norm, self.last = torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3)
        self.full, self.always = False, always

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(torch.nn.functional.dropout(self.norm(x), 0.5, self.training))
        if self.full:
            self.full = self.always
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return out


def beside_a_recording(net: Tight) -> tuple[Step, list[str]]:
    """A step that was recorded for batches of 10; there is no GPU to record with."""
    config = Config(batch_size=10, base_lr=0.5)
    step, said = Step(config, net, net, optimizer.build(config, net), loss.build(config), CPU), list[str]()
    step.say = said.append
    step._graph = step._recorder()
    step._graph._x, step._graph._y, step._graph._replay = X, Y, lambda: None
    return step, said


X, Y = torch.randn(10, 5, generator=torch.Generator().manual_seed(1)), torch.arange(10) % 3


def test_plain_step_beside_a_recorded_one_writes_to_its_gradients() -> None:
    net = Tight()
    step, said = beside_a_recording(net)
    step._gradients(net, X, Y, 1.0)
    places = [one.grad.data_ptr() for one in net.parameters() if one.grad is not None]
    step(X[:4], Y[:4], 0.5)
    first = [one.grad.clone() for one in net.parameters() if one.grad is not None]
    assert places == [one.grad.data_ptr() for one in net.parameters() if one.grad is not None] and not said
    net = Tight()
    step, _ = beside_a_recording(net)
    step._graph = None
    step._gradients(net, X, Y, 1.0)
    step(X[:4], Y[:4], 0.5)
    assert all(torch.equal(a, b.grad) for a, b in zip(first, net.parameters(), strict=True))


@pytest.mark.parametrize("evaluates", [False, True])
def test_memory_that_ends_beside_a_recorded_step_drops_the_recording(evaluates: bool) -> None:
    found = []
    for full in (False, True):
        net = Tight()
        step, said = beside_a_recording(net)
        net.full = full
        torch.manual_seed(5)
        scores = step.scores(net, X[:4], Y[:4]) if evaluates else step(X[:4], Y[:4], 0.5)
        step(X[:4], Y[:4], 0.5)
        found.append([*scores, *net.state_dict().values()])
        assert bool(said) is full and (step._graph is None) is full
    if not evaluates:  # an evaluation is no step to take back
        assert all(map(torch.equal, *found))


def test_step_that_does_not_fit_without_a_recording_is_refused() -> None:
    net = Tight(always=True)
    step, said = beside_a_recording(net)
    net.full = True
    with pytest.raises(MachineError, match="does not fit even with one example"):
        step(X[:4], Y[:4], 0.5)
    assert "goes on with plain steps" in said[0]
