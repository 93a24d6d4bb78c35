"""Trainings that go together: each ends as it does alone, up to rounding; who leaves disturbs nobody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from hostler.errors import SpecError
from hostler.train import loss, ranks
from hostler.train.config import Config
from hostler.train.fused import alike, convolutions, dropout, layers, losses, scaling
from hostler.train.fused.group import Group
from hostler.train.fused.ride import Saves
from hostler.train.fused.together import FusedMember, together
from hostler.train.parts import assemble

CPU = torch.device("cpu")
TOLERANCE = 2e-6  # of weights around 1, after thirty steps
BASE = Config(
    dataset="sklearn/digits",
    model="linear/bias",
    batch_size=100,
    train_length=2,
    seed_model=1,
    seed_training=1,
    base_lr=0.05,
    device="cpu",
)
NUMBERS: list[dict[str, Any]] = [
    {},
    {"base_lr": 0.01},
    {"momentum": 0.0},
    {"weight_decay": 0.01, "weight_decay_biases": 0.1},
    {"seed_model": 5},
    {"lr_schedule": "cosine"},
    {"warmup_steps": 5},
    {"clip_grad_norm": 0.1},
]
ADAM = [{}, {"momentum": "0.8,0.9"}, {"ada_eps": 1e-3}, {"weight_decay": 0.1}, {"seed_model": 3}]


Weights = dict[str, torch.Tensor]


def alone_with_average(config: Config) -> tuple[Weights, Weights]:
    parts = assemble(config, torch.device(config.device or "cpu"), ranks.TrainRanks())
    parts.model.train()
    for step in range(parts.span.total):
        parts.step(*parts.batch(step), parts.rate(step))
        if parts.average is not None:
            parts.average.update(parts.model)
    average = parts.average.model.state_dict() if parts.average is not None else {}
    return {name: one.detach() for name, one in parts.model.state_dict().items()}, average


def alone(config: Config) -> Weights:
    return alone_with_average(config)[0]


def trained(configs: Sequence[Config], device: torch.device = CPU) -> list[FusedMember]:
    *_, members = together(configs, device)
    return members


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in other)


def each_as_alone(base: Config, numbers: Sequence[dict[str, Any]], tolerance: float = TOLERANCE) -> None:
    configs = [base.but(**some) for some in numbers]
    for member in trained(configs, torch.device(base.device or "cpu")):
        assert member.end == "done"
        weights, average = alone_with_average(member.config)
        assert distance(member.weights, weights) < tolerance
        assert member.average.keys() == average.keys()
        assert not average or distance(member.average, average) < tolerance


def test_linear_models_end_as_they_do_alone() -> None:
    each_as_alone(BASE, NUMBERS)


def test_members_with_their_own_orders_train_as_alone() -> None:
    each_as_alone(BASE, [*NUMBERS, {"seed_training": 7}, {"seed_training": 8}])


def test_an_order_can_be_shared_by_seeds_that_differ() -> None:
    configs = [BASE.but(seed_training=seed, seed_order=3) for seed in (1, 2, 3)]
    assert Group(configs, CPU)._batches.shared
    each_as_alone(BASE.but(seed_order=3), [{"seed_training": seed} for seed in (1, 2, 3)])


@pytest.mark.parametrize("algorithm", ["adam", "adamw", "amsgrad", "amsgradw", "lamb"])
def test_adam_in_all_its_forms_ends_as_alone(algorithm: str) -> None:
    each_as_alone(BASE.but(optim_alg=algorithm, base_lr=1e-3), ADAM)


@pytest.mark.parametrize("more", [{}, {"seed_training": 7}], ids=["shared order", "one each"])
def test_lenets_end_as_they_do_alone(more: dict[str, Any]) -> None:
    each_as_alone(BASE.but(model="tiny/lenet", train_length=1), [*NUMBERS[:5], more])


@pytest.mark.parametrize("more", [{}, {"seed_training": 7}], ids=["shared order", "one each"])
def test_members_with_their_own_label_smoothing_train_as_alone(more: dict[str, Any]) -> None:
    each_as_alone(BASE, [{}, {"label_smoothing": 0.1}, {"label_smoothing": 0.4, "base_lr": 0.01}, more])


def test_losses_are_of_each_members_label_smoothing() -> None:
    configs = [BASE.but(label_smoothing=one) for one in (0.0, 0.3)]
    chance = torch.Generator().manual_seed(1)
    out, y = torch.randn(2, 6, 4, generator=chance), torch.tensor([0, 1, 2, 3, 0, 1])
    found, _ = losses.judge(out, y, configs[0], losses.smoothing(configs, CPU))
    wanted = [loss.build(config)(one, y) for config, one in zip(configs, out, strict=True)]
    torch.testing.assert_close(found, torch.stack(wanted))
    assert losses.smoothing(configs[1:], CPU) == 0.3, "one for all is a plain number"


@pytest.mark.parametrize("more", [{}, {"seed_training": 7}], ids=["shared order", "one each"])
def test_gradients_added_up_over_pieces_train_as_alone(more: dict[str, Any]) -> None:
    each_as_alone(BASE.but(grad_accum_steps=4), [*NUMBERS, more])


def test_norms_see_pieces_of_a_batch_as_they_do_alone() -> None:
    base = BASE.but(model="tiny/resnet_8", train_length=4, train_length_unit="step", base_lr=0.01)
    each_as_alone(base.but(grad_accum_steps=2), NUMBERS[:3], tolerance=2e-5)


def test_small_resnets_with_norms_and_shortcuts_train_as_alone() -> None:
    base = BASE.but(model="tiny/resnet_8", train_length=6, train_length_unit="step", base_lr=0.01)
    each_as_alone(base, NUMBERS[:5], tolerance=2e-5)


AVERAGES = ("poly_8", "poly_0", "ema_0.9", "ema", None)


def test_averages_of_each_kind_end_as_alone() -> None:
    each_as_alone(BASE, [{"averaging": one, "base_lr": 0.02} for one in AVERAGES])


def test_averages_of_norms_and_counts_end_as_alone() -> None:
    base = BASE.but(model="tiny/resnet_8", train_length=6, train_length_unit="step", base_lr=0.01)
    each_as_alone(base, [{"averaging": "ema_0.5"}, {"averaging": "poly_2", "seed_model": 5}], tolerance=2e-5)


def test_each_row_has_the_columns_that_it_would_have_alone() -> None:
    both, none = (member.rows[-1] for member in trained([BASE.but(averaging="poly_8"), BASE]))
    assert [name for name in both if name.startswith("test")] == [
        f"test/{which}/{what}"
        for which in ("last", "av")
        for what in ("loss", "accuracy", "time", "data_time")
    ]
    assert both["test/av/loss"] != both["test/last/loss"] == none["test/last/loss"]
    assert not any("/av/" in name for name in none)
    only = trained([BASE.but(averaging="poly_8", evaluate="av")])[0].rows[-1]
    assert only["test/av/loss"] == pytest.approx(both["test/av/loss"]) and "test/last/loss" not in only


def test_one_that_leaves_disturbs_no_average() -> None:
    base = BASE.but(averaging="ema_0.8")
    wild = base.but(base_lr=1e6, max_allowed_loss=1e3, averaging="poly_3")
    members = trained([wild, base, base.but(averaging="poly_1")])
    assert [member.end for member in members] == ["diverged", "done", "done"]
    for member in members[1:]:
        assert distance(member.average, alone_with_average(member.config)[1]) < TOLERANCE


def test_the_rows_are_those_of_a_training_alone() -> None:
    members = trained([BASE, BASE.but(base_lr=0.01)])
    assert [len(member.rows) for member in members] == [2, 2]
    last = members[0].rows[-1]
    assert {"train/loss", "train/accuracy", "test/last/accuracy", "train/learning_rate"} <= set(last)
    assert last["train/accuracy"] > 0.5 and last["train/seen_examples"] == 2 * 1438
    assert members[0].points.keys() == {10, 15, 20, 30}


def test_missing_seeds_are_drawn_once_for_all_and_recorded() -> None:
    first, second = trained([BASE.but(seed_model=None, seed_training=None)] * 2)
    assert distance(first.weights, second.weights) == 0
    assert first.config.seed_model is not None and first.config.seed_training == second.config.seed_training
    assert distance(first.weights, alone(first.config)) < TOLERANCE


def test_one_that_diverges_leaves_and_the_others_are_not_disturbed() -> None:
    wild = BASE.but(base_lr=1e6, max_allowed_loss=1e3)
    members = trained([BASE, wild, BASE.but(base_lr=0.01)])
    assert [member.end for member in members] == ["done", "diverged", "done"]
    assert "at step 10" in members[1].why and not members[1].rows
    for member in (members[0], members[2]):
        assert distance(member.weights, alone(member.config)) < TOLERANCE


def test_member_out_of_patience_leaves_and_the_others_continue() -> None:
    wrong_way = {"best_checkpoint_metric": "test/last/loss", "best_checkpoint_goal": "max"}
    base = BASE.but(train_length=4, **wrong_way)
    members = trained([base, base.but(early_stopping_patience=1)])
    assert [(member.end, len(member.rows)) for member in members] == [("done", 4), ("stopped early", 2)]
    assert distance(members[0].weights, alone(members[0].config)) < TOLERANCE
    assert distance(members[1].weights, alone(members[1].config.but(train_length=2))) < TOLERANCE


def test_a_state_taken_and_given_back_goes_on_exactly() -> None:
    averages = ("ema_0.9", "poly_2", None)
    configs = [BASE.but(**some, averaging=averages[n % 3]) for n, some in enumerate(NUMBERS)]
    whole, first, second = (Group(configs, CPU) for _ in range(3))
    whole.stretch(0, 15)
    first.stretch(0, 7)
    for member in range(len(configs)):
        second.load(member, first.state(member))
    second.stretch(7, 8)
    for member in range(len(configs)):
        one, other = second.state(member), whole.state(member)
        assert distance(one["model"], other["model"]) == 0
        assert ("average" in other) == (member % 3 < 2)
        assert "average" not in other or distance(one["average"], other["average"]) == 0
    assert second.rows(0)[3]["train/loss"] == whole.rows(0)[3]["train/loss"]


def test_the_loss_has_three_names_here_too() -> None:
    each_as_alone(BASE.but(loss="xentropy"), NUMBERS[:2])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"batch_size": 50}, "they differ in batch_size"),
        ({"model": "tiny/lenet"}, "they differ in model"),
        ({"train_length": 0}, "train_length is 0: nothing is trained"),
    ],
)
def test_what_cannot_go_together_is_said(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        alike.check([BASE, BASE.but(**changed)])


NETS = """
from torch import nn

def end(width):
    return nn.Flatten(), nn.BatchNorm1d(width), nn.Linear(width, 10)

def around(config, data):
    first = nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular")
    return nn.Sequential(first, nn.BatchNorm2d(4, affine=False), nn.ReLU(), *end(256))

def no_stats(config, data):
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), *end(144))

def hooked(config, data):
    layer = nn.Linear(64, 10)
    layer.register_forward_hook(lambda module, given, out: 2 * out)
    return nn.Sequential(nn.Flatten(), layer)

def by_count(config, data):
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, momentum=None), *end(144))
"""


@pytest.mark.parametrize("name", ["around", "no_stats", "hooked"])
def test_layers_with_ways_of_their_own_end_as_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    base = BASE.but(model=f"{tmp_path / 'nets.py'}:{name}", train_length=1, base_lr=0.01)
    each_as_alone(base, [{"averaging": "ema_0.5"}, {"seed_model": 5}], tolerance=2e-5)


def test_what_only_one_at_a_time_can_do_is_said(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    with pytest.raises(SpecError, match="cannot be trained together: "):
        trained([BASE.but(model=f"{tmp_path / 'nets.py'}:by_count")] * 2)


def test_vector_targets_are_not_mistaken_for_members_targets(tmp_path: Path) -> None:
    import numpy as np

    x, y = np.ones((6, 3), np.float32), np.ones((6, 2), np.float32)
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    base = BASE.but(dataset=f"npz/{tmp_path / 'a.npz'}", loss="mse", batch_size=3)
    assert assemble(base, CPU, ranks.TrainRanks()).config.model_output_dim == 2
    with pytest.raises(SpecError, match="several answers"):
        Group([base] * 2, CPU)


PICTURES = BASE.but(
    dataset="synthetic/3x12x12_4_60",
    model="tiny/lenet",
    batch_size=20,
    base_lr=0.02,
    data_splits_map={"train": "train"},
)


@pytest.mark.parametrize("order", [{}, {"seed_training": 7}])
@pytest.mark.parametrize(
    "names", [("flip", "crop_2"), ("resizedcrop_0.3",), ("randaugment",), ("mixup_0.4",), ("cutmix", "mixup")]
)
def test_augmented_batches_train_each_member_as_alone(names: tuple[str, ...], order: dict[str, Any]) -> None:
    base = PICTURES.but(augment=names, train_length=1)
    each_as_alone(base, [{}, {"base_lr": 0.01, **order}, {"label_smoothing": 0.1}], tolerance=1e-5)


def test_mixed_classes_with_square_loss_train_as_alone() -> None:
    each_as_alone(PICTURES.but(augment=("mixup",), loss="mse", train_length=1), [{}, {"base_lr": 0.01}], 1e-5)


def test_pieces_of_augmented_batches_train_as_alone() -> None:
    each_as_alone(PICTURES.but(augment=("mixup",), grad_accum_steps=2, train_length=1), NUMBERS[:3], 1e-5)


def test_scaled_losses_of_half_precision_train_as_alone() -> None:
    base = BASE.but(amp="fp16", train_length=5, train_length_unit="step")
    each_as_alone(base, [{}, {"base_lr": 0.01}, {"clip_grad_norm": 0.1}], tolerance=2e-3)


@pytest.mark.parametrize(("model", "tolerance"), [("linear/bias", 2e-5), ("tiny/lenet", 5e-4)])
def test_brain_floats_train_as_alone(model: str, tolerance: float) -> None:
    base = BASE.but(model=model, amp="bf16", train_length=10, train_length_unit="step")
    each_as_alone(base, NUMBERS[:4], tolerance)
    (rounded,), (whole,) = trained([base]), trained([base.but(amp=None)])
    assert distance(rounded.weights, whole.weights) > tolerance, "both were computed in full"


def test_member_that_overflows_skips_its_step_alone() -> None:
    def went(*rates: float) -> Group:
        group = Group([BASE.but(amp="fp16", base_lr=rate) for rate in rates], CPU)
        group._scale.scale[0] = 2.0**120  # type: ignore[union-attr]
        group.stretch(0, 3)
        return group

    group, before = went(0.05, 0.02), Group([BASE] * 2, CPU)
    assert distance(group.state(0)["model"], before.state(0)["model"]) == 0, "it has skipped all steps"
    assert float(group._scale.scale[0]) == 2.0**117  # type: ignore[union-attr]
    assert group.state(0)["optimizer"]["count"] == 0 and group.state(1)["optimizer"]["count"] == 3
    assert distance(group.state(1)["model"], before.state(1)["model"]) > 0


def test_scale_that_held_for_long_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "PATIENCE", 2)
    group = Group([BASE.but(amp="fp16")] * 2, CPU)
    group.stretch(0, 4)
    assert group._scale.scale.tolist() == [scaling.FIRST * 4] * 2  # type: ignore[union-attr]


DROPS = PICTURES.but(model="tiny/wrn_10_1_0.3", dataset="synthetic/3x8x8_4_60")


def test_dropout_of_a_member_depends_on_its_seed_alone() -> None:
    def weights(*seeds: int) -> list[Weights]:
        configs = [DROPS.but(seed_training=seed, train_length=1) for seed in seeds]
        return [member.weights for member in trained(configs)]

    first, second, third = weights(1, 2, 3)
    other, again = weights(9, 2)
    assert distance(again, second) < 1e-5, "the same numbers beside others, at another place"
    assert distance(first, second) > 1e-4 and distance(other, third) > 1e-4


def test_dropout_of_nothing_trains_as_alone() -> None:
    base = DROPS.but(model="tiny/wrn_10_1_0.0", train_length=2, train_length_unit="step")
    each_as_alone(base, [{}, {"base_lr": 0.01}], 1e-4)


@pytest.mark.parametrize("kind", [torch.nn.Dropout, torch.nn.Dropout2d])
def test_dropout_keeps_its_share_and_the_mean(kind: Any) -> None:
    made = dropout.swapped(torch.nn.Sequential(kind(0.25)))
    made[0].key.fill_(12345)
    x = torch.ones(100, 64, 4, 4)
    found = made.train()(x)
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float((found == 0).float().mean()) == pytest.approx(0.25, abs=0.03)
    whole = (found == found[:, :, :1, :1]).all()
    assert bool(whole) == (kind is torch.nn.Dropout2d), "whole channels, or each number"
    assert torch.equal(made.eval()(x), x)


def test_pictures_with_channels_last_train_as_alone() -> None:
    each_as_alone(PICTURES.but(channels_last=True, train_length=1), NUMBERS[:3], 1e-5)


def test_rows_of_pixels_give_the_convolution_and_its_gradients() -> None:
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 2, 6, 7, dtype=torch.float64, generator=chance, requires_grad=True)
    weight = torch.randn(2, 4, 2, 3, 5, dtype=torch.float64, generator=chance, requires_grad=True)
    bias = torch.randn(2, 4, dtype=torch.float64, generator=chance, requires_grad=True)
    ours = convolutions.conv(x, weight, bias, (1, 2))
    theirs = layers.apart(
        torch.nn.functional.conv2d(
            layers.beside(x), weight.flatten(0, 1), bias.flatten(), padding=(1, 2), groups=2
        ),
        2,
    )
    assert torch.allclose(ours, theirs)
    back = torch.randn(ours.shape, dtype=torch.float64, generator=chance)
    for one, other in zip(
        torch.autograd.grad(ours, [x, weight, bias], back),
        torch.autograd.grad(theirs, [x, weight, bias], back),
        strict=True,
    ):
        assert torch.allclose(one, other)


def test_rows_of_everybodys_pixels_give_each_members_convolution() -> None:
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, 6, 7, dtype=torch.float64, generator=chance, requires_grad=True)
    weight = torch.randn(2, 4, 2, 3, 5, dtype=torch.float64, generator=chance, requires_grad=True)
    bias = torch.randn(2, 4, dtype=torch.float64, generator=chance, requires_grad=True)
    ours = convolutions.conv(x, weight, bias, (1, 2))
    theirs = torch.nn.functional.conv2d(x, weight.flatten(0, 1), bias.flatten(), padding=(1, 2))
    theirs = layers.apart(theirs, 2)
    assert torch.allclose(ours, theirs)
    back = torch.randn(ours.shape, dtype=torch.float64, generator=chance)
    for one, other in zip(
        torch.autograd.grad(ours, [x, weight, bias], back),
        torch.autograd.grad(theirs, [x, weight, bias], back),
        strict=True,
    ):
        assert torch.allclose(one, other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU on this machine")
@pytest.mark.parametrize("model", ["linear/bias", "tiny/lenet", "tiny/resnet_8"])
def test_on_a_gpu_each_ends_as_alone(model: str) -> None:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        base = BASE.but(model=model, device="cuda", base_lr=0.01, train_length=3, train_length_unit="step")
        each_as_alone(
            base,
            [*NUMBERS[:5], {"averaging": "poly_8"}, {"seed_training": 7}],
            tolerance=1e-3 if "resnet" in model else 1e-5,
        )
    finally:
        torch.backends.cudnn.allow_tf32 = before


def test_invalid_graph_is_refused_as_it_is_alone() -> None:
    with pytest.raises(SpecError, match="cuda_graph: true, but the device is cpu"):
        Group([BASE.but(cuda_graph=True)] * 2, CPU)


def test_group_is_saved_after_epochs_once_it_has_lasted() -> None:
    now = [100.0]
    saves, asked = Saves(None, clock=lambda: now[0]), Saves("epoch", clock=lambda: now[0])
    assert asked.due(10, epoch_ended=True), "as it was asked for"
    assert not saves.due(10, epoch_ended=True)
    now[0] += saves._policy.least
    assert saves.due(20, epoch_ended=True) and saves.due(20, epoch_ended=False)
