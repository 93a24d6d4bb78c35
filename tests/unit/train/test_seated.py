"""Runs that share a process: each ends by itself, and goes on exactly after a kill anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hostler.records.checkpoint import saved_folder
from hostler.records.run import handoff
from hostler.sdk.start import CURRENT
from hostler.train import ranks
from hostler.train.config import Config
from hostler.train.fused.group import Group
from hostler.train.fused.ride import Ride
from hostler.train.parts import assemble
from hostler.trainer import experiment_generator
from seats_world import BASE, Cabin, Killed

TOLERANCE = 3e-6  # of weights around 1, after 45 steps: together against alone
RATES = [BASE.but(base_lr=rate) for rate in (0.01, 0.05, 0.1)]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("hostler.sdk.signals.Signals.install", lambda self: None)
    torch.set_num_threads(1)
    yield
    CURRENT._runs.clear()


def alone(config: Config, steps: int | None = None, *, average: bool = False) -> dict[str, torch.Tensor]:
    parts = assemble(config, torch.device("cpu"), ranks.TrainRanks())
    parts.model.train()
    for step in range(parts.span.total if steps is None else steps):
        parts.step(*parts.batch(step), parts.rate(step))
        if parts.average is not None:
            parts.average.update(parts.model)
    model = parts.average.model if average and parts.average is not None else parts.model
    return {name: one.detach() for name, one in model.state_dict().items()}


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in other)


def same(one: Cabin, other: Cabin, *numbers: int, names: tuple[str, ...] = ("model",)) -> bool:
    return all(
        one.stats(n) == other.stats(n) and distance(one.weights(n, name), other.weights(n, name)) == 0
        for n in numbers
        for name in names
    )


def killed_at(monkeypatch: pytest.MonkeyPatch, what: Any, name: str, call: int) -> None:
    """The process dies as this is called for the so manyeth time."""
    real, calls = getattr(what, name), [0]

    def act(*given: Any, **words: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise Killed
        return real(*given, **words)

    monkeypatch.setattr(what, name, act)


def test_each_run_has_its_own_rows_weights_points_and_end(tmp_path: Path) -> None:
    cabin = Cabin(tmp_path, RATES)
    cabin.train()
    for number, config in enumerate(RATES):
        assert cabin.left(number) == {"code": 0}
        assert handoff.read(cabin.folder(number).finished) == {}
        assert len(cabin.stats(number)) == 1 + 3
        assert distance(cabin.weights(number), alone(config)) < TOLERANCE
        assert "test/last/accuracy" in cabin.said(number)
        assert (cabin.folder(number).output / "done").exists()


def test_last_checkpoint_has_the_step_at_which_training_ended(tmp_path: Path) -> None:
    patient = [RATES[0].but(early_stopping_patience=1, best_checkpoint_goal="max"), *RATES[1:]]
    cabin = Cabin(tmp_path, [one.but(best_checkpoint_goal="max") for one in patient])
    cabin.train()
    newest = [saved_folder.committed(cabin.folder(number).checkpoint)[0] for number in range(3)]
    assert [mark.step for mark in newest] == [30, 45, 45]
    assert (handoff.read(cabin.folder(0).early) or {})["step"] == 30


def test_diverged_or_stopped_member_leaves_others_equal_to_the_bit(tmp_path: Path) -> None:
    early = {"early_stopping_patience": 1, "best_checkpoint_goal": "max"}  # the wrong way: it stops at once
    calm, mixed = Cabin(tmp_path / "calm", RATES), [*RATES]
    mixed[1] = BASE.but(base_lr=1e6, max_allowed_loss=10.0)
    mixed[0] = mixed[0].but(early_stopping_patience=1)
    mixed = [one.but(best_checkpoint_goal="max") for one in mixed]
    lively = Cabin(tmp_path / "lively", mixed)
    calm.train()
    lively.train()
    assert handoff.read(lively.folder(1).left) is not None and lively.left(1)["code"] == 1
    assert "the loss is" in lively.said(1)
    assert lively.left(0) == {"code": 0} and len(lively.stats(0)) == 1 + 2
    assert distance(lively.weights(0), alone(mixed[0].but(**early), steps=30)) < TOLERANCE
    assert same(calm, lively, 2)


def test_stopped_member_saves_leaves_and_may_join_others_later(tmp_path: Path) -> None:
    cabin = Cabin(tmp_path, RATES)
    cabin.folder(1).request_stop("rung")
    cabin.train()
    assert cabin.left(1) == {"code": 75} and "stops: other runs are better so far" in cabin.said(1)
    assert [cabin.left(n) for n in (0, 2)] == [{"code": 0}] * 2
    after = cabin.again()
    after.train(1)
    assert after.left(1) == {"code": 0}
    assert distance(after.weights(1), alone(RATES[1])) < TOLERANCE


@pytest.mark.parametrize(
    ("what", "name", "call"),
    [(Group, "stretch", 2), (Group, "stretch", 4), (Group, "rows", 2), (Ride, "_boundary", 3)],
)
def test_killed_anywhere_it_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: Any, name: str, call: int
) -> None:
    whole, broken = Cabin(tmp_path / "whole", RATES), Cabin(tmp_path / "broken", RATES)
    whole.train()
    with monkeypatch.context() as patch:
        killed_at(patch, what, name, call)
        with pytest.raises(Killed):
            broken.train()
    after = broken.again()
    after.train()
    assert same(whole, after, 0, 1, 2)


AVERAGED = [one.but(averaging=kind) for one, kind in zip(RATES, ("ema_0.9", "poly_8", "poly_0"), strict=True)]


def test_averages_are_evaluated_saved_and_kept_as_alone(tmp_path: Path) -> None:
    cabin = Cabin(tmp_path, [one.but(save_freq=3) for one in (*AVERAGED[:2], RATES[2])])
    cabin.train()
    for number, config in enumerate(AVERAGED[:2]):
        average = alone(config, average=True)
        assert distance(cabin.weights(number), alone(config)) < TOLERANCE
        assert distance(cabin.weights(number, "model_av"), average) < TOLERANCE
        assert distance(cabin.weights(number, "checkpoints/epoch_00003_av"), average) < TOLERANCE
        assert {"test/last/loss", "test/av/loss"} <= set(cabin.stats(number)[0])
    assert not any("/av/" in name for name in cabin.stats(2)[0])
    assert not (cabin.folder(2).output / "model_av.safetensors").exists()


def test_the_best_checkpoint_is_the_average_where_that_is_watched(tmp_path: Path) -> None:
    more = {"save_best_checkpoint": True, "best_checkpoint_metric": "test/av/loss"}
    cabin = Cabin(tmp_path, [one.but(**more) for one in AVERAGED])
    cabin.train()
    for number in range(3):
        best = cabin.weights(number, "checkpoints/best")
        assert distance(best, cabin.weights(number, "model_av")) == 0
        assert distance(best, cabin.weights(number)) > 0


@pytest.mark.parametrize(("what", "name", "call"), [(Group, "stretch", 3), (Group, "rows", 2)])
def test_killed_group_with_averages_ends_as_if_undisturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: Any, name: str, call: int
) -> None:
    norms = {"model": "tiny/resnet_8", "train_length": 12, "train_length_unit": "step", "steps_per_epoch": 5}
    configs = [one.but(**norms) for one in AVERAGED]
    whole, broken = Cabin(tmp_path / "whole", configs), Cabin(tmp_path / "broken", configs)
    whole.train()
    with monkeypatch.context() as patch:
        killed_at(patch, what, name, call)
        with pytest.raises(Killed):
            broken.train()
    after = broken.again()
    after.train()
    assert same(whole, after, 0, 1, 2, names=("model", "model_av"))


def test_kill_during_a_save_continues_exactly_from_different_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = Cabin(tmp_path / "whole", RATES), Cabin(tmp_path / "broken", RATES)
    whole.train()
    with monkeypatch.context() as patch:
        killed_at(patch, type_of_run(), "save", 5)  # the second of the three, the second time
        with pytest.raises(Killed):
            broken.train()
    after = broken.again()
    monkeypatch.setattr("hostler.train.fused.ride.SIGN", 0.0)
    after.train()
    waited = [n for n in range(3) if "waits at step" in after.said(n)]
    assert waited and len(waited) < 3  # who sleeps shows that it lives
    steps = [line for n in range(3) for line in after.said(n).splitlines() if "goes on from step" in line]
    assert len({line.rpartition(" ")[2] for line in steps}) == 2
    assert same(whole, after, 0, 1, 2)


def test_fewer_of_a_group_go_on_exactly_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, broken = Cabin(tmp_path / "whole", RATES), Cabin(tmp_path / "broken", RATES)
    whole.train()
    with monkeypatch.context() as patch:
        killed_at(patch, Group, "stretch", 4)
        with pytest.raises(Killed):
            broken.train()
    after = broken.again()
    after.train(2)
    assert same(whole, after, 2)


def test_a_group_that_is_preempted_goes_on_exactly(tmp_path: Path) -> None:
    whole, broken = Cabin(tmp_path / "whole", RATES), Cabin(tmp_path / "broken", RATES)
    for number in range(3):
        broken.folder(number).request_stop("preempted")
    whole.train()
    broken.train()
    assert [broken.left(n) for n in range(3)] == [{"code": 75}] * 3
    after = broken.again()
    after.train()
    assert same(whole, after, 0, 1, 2)


def test_run_that_began_in_a_group_continues_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cabin = Cabin(tmp_path, AVERAGED)
    cabin.folder(1).request_stop("person")
    cabin.train()
    after = cabin.again()
    for name, value in after.variables(1).items():
        monkeypatch.setenv(name, value)
    epochs = [(epoch.number, epoch.average) for epoch in experiment_generator(AVERAGED[1])]
    assert [number for number, _ in epochs] == [1, 2, 3] and epochs[-1][1] is not None
    assert distance(after.weights(1), alone(AVERAGED[1])) < TOLERANCE
    assert distance(after.weights(1, "model_av"), alone(AVERAGED[1], average=True)) < TOLERANCE


def test_group_too_large_for_memory_is_halved_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Group.rehearse

    def rehearse(group: Group) -> None:
        if len(group.members) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        real(group)

    monkeypatch.setattr(Group, "rehearse", rehearse)
    configs = [BASE.but(base_lr=0.01 * n) for n in range(1, 6)]
    cabin = Cabin(tmp_path, configs)
    cabin.train()
    assert [cabin.left(n)["code"] for n in range(5)] == [0, 0, 75, 75, 75]
    assert all(cabin.left(n)["apart"]["limit"] == 2 for n in (2, 3, 4))
    assert all("5 do not fit on the device together" in cabin.said(n) for n in range(5))
    after = cabin.again(but=(2, 3, 4))
    after.train(2, 3)
    assert [after.left(n) for n in (2, 3)] == [{"code": 0}] * 2


def test_memory_running_out_later_sends_all_back_with_their_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Group.stretch, [0]

    def stretch(group: Group, first: int, count: int) -> Any:
        calls[0] += 1
        if calls[0] == 4:
            raise RuntimeError("can't allocate memory")
        return real(group, first, count)

    monkeypatch.setattr(Group, "stretch", stretch)
    cabin = Cabin(tmp_path, RATES)
    cabin.train()
    assert all(cabin.left(n)["apart"]["limit"] == 1 for n in range(3))
    assert all(list(cabin.folder(n).checkpoint.iterdir()) for n in range(3))


def test_group_is_not_made_as_wide_after_memory_ran_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cabin = Cabin(tmp_path, RATES)
    with monkeypatch.context() as patch:
        killed_at(patch, Group, "stretch", 4)
        with pytest.raises(Killed):
            cabin.train()
    after, made, real = cabin.again(), list[int](), Group.rehearse

    def rehearse(group: Group) -> None:
        made.append(len(group.members))
        real(group)

    monkeypatch.setattr(Group, "rehearse", rehearse)
    after.train(0, 1, limit=2)  # as a worker starts it that was told so
    assert made == [2]
    assert "3 did not fit: its numbers agree up to rounding" in after.said(1)
    assert all(distance(after.weights(n), alone(RATES[n])) < TOLERANCE for n in (0, 1))


NETS = """
import torch

class Tied(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.one = torch.nn.Linear(64, 64)
        self.two = torch.nn.Linear(64, 64)
        self.two.weight = self.one.weight
        self.last = torch.nn.Linear(64, 10)

    def forward(self, x):
        return self.last(self.two(self.one(x.flatten(1)).relu()).relu())

class Looks(Tied):
    def __init__(self, config, data):
        super().__init__(config, data)
        self.two.weight = torch.nn.Parameter(self.one.weight.detach().clone())

    def forward(self, x):
        return super().forward(-x if self.one.weight.sum() < 0 else x)

class Unsaved(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.last = torch.nn.Linear(64, 10)
        self.register_buffer("scale", torch.tensor(0.5), persistent=False)

    def forward(self, x):
        return self.last(x.flatten(1) * self.scale)

def drops(config, data):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(),
                               torch.nn.Dropout(0.5), torch.nn.Linear(32, 10))

def alpha(config, data):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.AlphaDropout(0.5), torch.nn.Linear(64, 10))
"""


def test_killed_group_that_draws_and_scales_goes_on_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    more = {"model": f"{tmp_path / 'nets.py'}:drops", "augment": ("mixup",), "amp": "fp16"}
    length = {"train_length": 12, "train_length_unit": "step", "steps_per_epoch": 5}
    configs = [BASE.but(**more, **length, seed_training=seed) for seed in (1, 2, 3)]
    whole, broken = Cabin(tmp_path / "whole", configs), Cabin(tmp_path / "broken", configs)
    whole.train()
    with monkeypatch.context() as patch:
        killed_at(patch, Group, "stretch", 3)
        with pytest.raises(Killed):
            broken.train()
    after = broken.again()
    after.train()
    assert same(whole, after, 0, 1, 2)
    assert distance(whole.weights(0), whole.weights(1)) > 0


@pytest.mark.parametrize(
    ("model", "why"),
    [("Tied", "two names"), ("Looks", "data-dependent control flow"), ("alpha", "drops in a way")],
)
def test_own_model_that_cannot_be_stacked_goes_one_by_one(tmp_path: Path, model: str, why: str) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    base = BASE.but(model=f"{tmp_path / 'nets.py'}:{model}")
    cabin = Cabin(tmp_path, [base, base.but(base_lr=0.1)])
    cabin.train()
    assert [cabin.left(n)["apart"]["limit"] for n in (0, 1)] == [1, 1]
    assert why in cabin.said(1)


def test_a_buffer_that_is_not_saved_is_everybody_s_own(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    base = BASE.but(model=f"{tmp_path / 'nets.py'}:Unsaved", averaging="poly_8")
    cabin = Cabin(tmp_path, [base, base.but(base_lr=0.1)])
    cabin.train()
    for number, config in enumerate(cabin.configs):
        assert distance(cabin.weights(number), alone(config)) < TOLERANCE
        assert distance(cabin.weights(number, "model_av"), alone(config, average=True)) < TOLERANCE


def test_one_runs_mistake_is_only_in_its_own_log(tmp_path: Path) -> None:
    wrong = BASE.but(best_checkpoint_metric="nothing like it", early_stopping_patience=1)
    cabin = Cabin(tmp_path, [BASE, wrong])
    cabin.configs = [BASE.but(best_checkpoint_metric=wrong.best_checkpoint_metric), wrong]
    cabin.train()
    assert cabin.left(0) == {"code": 0}
    assert cabin.left(1) == {"code": 2} and "fits no column" in cabin.said(1)
    assert "fits no column" not in cabin.said(0)


def type_of_run() -> Any:
    from hostler.sdk.run import Run

    return Run
