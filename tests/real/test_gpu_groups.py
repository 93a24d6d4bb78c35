"""Trainings that go together on a real GPU: kernels, recorded steps, and two processes on one GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from hostler.train.config import Config
from hostler.train.fused import convolutions, kernels, layers
from hostler.train.fused.group import Group

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU on this machine"),
]
BASE = Config(
    dataset="synthetic/3x12x12_4_100",
    model="tiny/lenet",
    batch_size=20,
    train_length=3,
    base_lr=0.01,
    seed_model=1,
    seed_training=1,
    device="cuda",
)


@pytest.fixture(autouse=True)
def exact() -> Any:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def turned(*shape: int) -> torch.Tensor:
    """Numbers whose rows and columns have changed places in memory."""
    made = torch.randn(*shape[:-2], shape[-1], shape[-2], device="cuda").mT
    return made.requires_grad_()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("sides", [(8, 8), (9, 7)])
def test_pools_give_what_those_of_torch_give(relu: bool, sides: tuple[int, int]) -> None:
    x = turned(3, 5, 4, *sides)
    with torch.no_grad():
        x[0, 0, 0, :2, :2] = 1.0  # all alike
        x[1, 0, 0, 0, 0] = float("nan")
    ours = kernels.of(x).Pool.apply(x, 2, relu)
    theirs = F.max_pool2d(x.flatten(0, 1), 2).view(ours.shape)
    theirs = theirs.relu() if relu else theirs
    assert torch.equal(ours.nan_to_num(7), theirs.nan_to_num(7))
    back = torch.randn_like(ours)
    assert torch.equal(*(torch.autograd.grad(one, x, back)[0] for one in (ours, theirs)))


@pytest.mark.parametrize("stacked", [True, False])
def test_rows_of_pixels_give_the_convolution(stacked: bool) -> None:
    x = turned(3, 5, 2, 9, 11) if stacked else turned(5, 2, 9, 11)
    weight = torch.randn(3, 4, 2, 3, 5, device="cuda", requires_grad=True)
    bias = torch.randn(3, 4, device="cuda", requires_grad=True)
    ours = convolutions.conv(x, weight, bias, (1, 2))
    wide, groups = (layers.beside(x), 3) if stacked else (x, 1)
    flat = weight.flatten(0, 1).double(), bias.flatten().double()
    theirs = layers.apart(F.conv2d(wide.double(), *flat, padding=(1, 2), groups=groups), 3)
    assert torch.allclose(ours.double(), theirs, atol=1e-4)
    back = torch.randn_like(ours)
    ours_back = torch.autograd.grad(ours, (x, weight, bias), back)
    for one, other in zip(
        ours_back, torch.autograd.grad(theirs, (x, weight, bias), back.double()), strict=True
    ):
        assert float((one - other).norm() / other.norm()) < 1e-5


WAYS: list[dict[str, Any]] = [
    {"augment": ("flip", "crop_2")},
    {"augment": ("resizedcrop",)},
    {"augment": ("randaugment",)},
    {"augment": ("mixup_0.3", "cutmix")},
    {"amp": "fp16"},
    {"amp": "bf16", "channels_last": True},
    {"model": "tiny/wrn_10_1_0.3"},
    {"model": "tiny/resnet_8", "averaging": "ema_0.9"},
    {"optim_alg": "adamw", "weight_decay": 0.1, "grad_accum_steps": 2},
    {"optim_alg": "lamb", "weight_decay": 0.1, "clip_grad_norm": 1.0},
]


def weights(given: dict[str, Any], *, recorded: bool) -> list[dict[str, torch.Tensor]]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    base = BASE.but(**given, cuda_graph=None if recorded else False)
    group = Group([base, base.but(base_lr=0.02), base.but(seed_training=5)], torch.device("cuda"))
    group.rehearse()
    for epoch in range(group.span.epochs):
        group.stretch(group.span.first(epoch), group.span.steps(epoch))
    found = [group.state(member) for member in range(3)]
    torch.use_deterministic_algorithms(False)
    return [{**one["model"], **{f"av {n}": t for n, t in one.get("average", {}).items()}} for one in found]


@pytest.mark.parametrize("given", WAYS, ids=lambda given: "-".join(map(str, given.values())))
def test_recorded_group_equals_an_unrecorded_one_to_the_bit(given: dict[str, Any]) -> None:
    pairs = zip(weights(given, recorded=True), weights(given, recorded=False), strict=True)
    for number, (one, other) in enumerate(pairs):
        for name, tensor in one.items():
            assert torch.equal(tensor, other[name]), f"{name} of {number}"
            assert not tensor.is_floating_point() or bool(tensor.isfinite().all())


@pytest.mark.parametrize(
    ("exchange", "compiled", "near"),
    [("null", "false", 1e-4), ("bf16", "false", 1e-2), ("null", "true", 1e-3)],
)
def test_two_processes_on_one_gpu_train_one_model(
    tmp_path: Path, exchange: str, compiled: str, near: float
) -> None:
    words = [
        "dataset=synthetic/1x28x28_10_400", "model=tiny/lenet", "batch_size=40", "train_length=2",
        "base_lr=0.01", "seed_model=1", "seed_training=1", f"compile={compiled}",
        f"grad_exchange={exchange}",
    ]  # fmt: skip
    losses = []
    for devices in ("1", "2"):
        folder = tmp_path / devices
        folder.mkdir()
        own = {**os.environ, "HOSTLER_DEVICES": devices, "CUDA_VISIBLE_DEVICES": "0"}
        command = [sys.executable, "-m", "hostler", "train", *words, "output_dir=out"]
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]
        rows = (folder / "out" / "stats.csv").read_text().splitlines()
        losses.append(float(rows[-1].split(",")[rows[0].split(",").index("train/loss")]))
    assert "they share 1 GPU" in (tmp_path / "2" / "out" / "training.log").read_text()
    assert losses[1] == pytest.approx(losses[0], rel=near)
