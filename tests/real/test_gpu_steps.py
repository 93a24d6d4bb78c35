"""Steps of the trainer recorded as CUDA graphs: the same numbers to the bit, for whatever a step does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hostler.errors import SpecError
from hostler.trainer import experiment_generator, together

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU on this machine"),
]

OWN = """
import torch
from hostler.train.models.normal import centre

class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.first, self.last, self.calls = torch.nn.Linear(20, 32), torch.nn.Linear(32, 4), 0

    def forward(self, x):
        return self.last(torch.nn.functional.dropout(self.first(x).relu(), 0.5, self.training))

class Looks(Net):
    def forward(self, x):
        return super().forward(x) if float(x.sum()) < 1e9 else x

class Waits(Net):
    def forward(self, x):
        torch.cuda.synchronize()
        return super().forward(x)

class Counts(Net):
    def forward(self, x):
        self.calls += self.training
        return super().forward(x)

class Prints(Net):
    def forward(self, x):
        print("forward")
        return super().forward(x)

class Hooked(Net):
    def __init__(self, config, data):
        super().__init__(config, data)
        self.first.register_forward_hook(lambda *_: None)

class Lazy(Net):
    def __init__(self, config, data):
        super().__init__(config, data)
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.arange(20, device=x.device) % 3 / 2
        return super().forward(x * self.mask)

def pictures(config, data):
    made = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 36, 4))
    centre(made, data, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    return made

def loss(out, target):
    return torch.nn.functional.cross_entropy(out.float(), target) * 0.5
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
    "output_dir": "out",
}
NET: dict[str, Any] = {"model": "own.py:Net", "compile": True}
PICTURES: dict[str, Any] = {"model": "tiny/resnet_18", "dataset": "synthetic/3x8x8_4_100"}
PLAIN = "goes on with plain steps"


def weights(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> dict[str, torch.Tensor]:
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "own.py").write_text(OWN)
    pixels = np.random.default_rng(0).integers(0, 256, (100, 3, 8, 8), dtype=np.uint8)
    np.savez("bytes.npz", x_train=pixels, y_train=np.arange(100) % 4)
    for epoch in experiment_generator({**BASE, **given}):
        last = epoch
    found = {name: one.detach().cpu().clone() for name, one in last.model.state_dict().items()}
    if last.average is not None:
        found |= {f"av {name}": one.detach().cpu().clone() for name, one in last.average.state_dict().items()}
    return found


def said(folder: Path) -> str:
    return (folder / "out" / "training.log").read_text()


@pytest.mark.parametrize(
    "given",
    [
        *({**NET, "optim_alg": alg, "weight_decay": 0.1} for alg in ("adam", "adamw", "amsgrad", "amsgradw")),
        {**NET, "optim_alg": "lamb", "weight_decay": 0.1},
        {**NET, "momentum": 0},
        {**NET, "momentum": 0.9, "weight_decay": 0.1},
        {**NET, "clip_grad_norm": 0.1, "grad_accum_steps": 4, "averaging": "ema_0.9"},
        {**NET, "amp": "bf16"},
        {**NET, "loss": "own.py:loss"},
        {**NET, "model": "own.py:Lazy"},
        {**NET, "compile": "reduce-overhead"},
        {"model": "linear/bias", "averaging": "poly_8"},
        *({**PICTURES, "augment": [one]} for one in ("flip", "crop", "resizedcrop", "mixup", "cutmix")),
        {**PICTURES, "augment": ["randaugment"]},
        {**PICTURES, "augment": ["flip", "crop", "mixup"], "channels_last": True, "amp": "bf16"},
        {
            "model": "own.py:pictures", "compile": True, "dataset": "npz/bytes.npz", "data_dir": ".",
            "data_splits_map": {"train": "train"},
        },
    ],
    ids=lambda given: "-".join(str(one) for one in given.values()),
)  # fmt: skip
def test_recorded_step_has_the_bits_of_a_plain_step(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = weights(tmp_path / "plain", monkeypatch, cuda_graph=False, **given)
    recorded = weights(tmp_path / "recorded", monkeypatch, **given)
    assert PLAIN not in said(tmp_path / "recorded"), said(tmp_path / "recorded")
    far = {name: float((one - recorded[name]).abs().max()) for name, one in plain.items()}
    assert all(torch.equal(one, recorded[name]) for name, one in plain.items()), far


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("Looks", "it waits for the device"),
        ("Waits", ""),
        ("Counts", "it changes calls in Python"),
        ("Prints", "it prints or logs"),
        ("Hooked", "layer first has a hook"),
    ],
)
def test_model_that_cannot_be_recorded_goes_on_plain(
    model: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**NET, "model": f"own.py:{model}"}
    plain = weights(tmp_path / "plain", monkeypatch, cuda_graph=False, **given)
    tried = weights(tmp_path / "tried", monkeypatch, **given)
    lines = [line for line in said(tmp_path / "tried").splitlines() if PLAIN in line]
    assert len(lines) == 1 and why in lines[0], lines
    assert all(torch.equal(one, tried[name]) for name, one in plain.items())


def test_model_that_synchronises_in_its_step_is_named_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SpecError, match="cannot be recorded as a CUDA graph") as caught:
        weights(tmp_path / "looks", monkeypatch, cuda_graph=True, model="own.py:Looks")
    assert caught.value.hint == "cuda_graph: false"


def test_recorded_group_averages_have_the_bits_of_plain_steps() -> None:
    given = {**BASE, "model": "tiny/lenet", "dataset": "synthetic/1x28x28_4_100", "base_lr": 0.01}
    configs = [{**given, "averaging": one} for one in ("ema_0.9", "poly_8", None)]
    for one in configs:
        one.pop("output_dir")
    found = [list(together([{**one, "cuda_graph": graph} for one in configs]))[-1] for graph in (None, False)]
    for recorded, plain in zip(*found, strict=True):
        for name, one in plain.weights.items():
            assert torch.equal(one, recorded.weights[name]), name
        for name, one in plain.average.items():
            assert torch.equal(one, recorded.average[name]), name


CAPPED = """
import json, sys, torch
from hostler.trainer import experiment_generator
given = json.loads(sys.argv[1])
cap = given.pop("cap")
if cap:
    torch.cuda.set_per_process_memory_fraction(cap / torch.cuda.mem_get_info()[1])
for epoch in experiment_generator(given):
    pass
log = open("out/training.log").read()
print(json.dumps({"reserved": torch.cuda.max_memory_reserved(), "plain": "goes on with plain steps" in log,
                  "loss": epoch["train/loss"]}))
"""
WIDE = """
import torch

def net(config, data):
    return torch.nn.Sequential(torch.nn.Linear(20, 4096), *(torch.nn.Linear(4096, 4096) for _ in range(16)),
                               torch.nn.Linear(4096, 4))
"""  # 1 GiB of weights


def capped(folder: Path, cap: float, **given: Any) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what another test left on the device would count."""
    folder.mkdir()
    (folder / "own.py").write_text(WIDE)
    asked = {**BASE, "model": "own.py:net", "train_length": 1, "deterministic": False, "cap": cap, **given}
    words = [sys.executable, "-c", CAPPED, json.dumps(asked)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_recorded_step_takes_little_more_memory_than_a_plain_one(tmp_path: Path) -> None:
    plain = told(capped(tmp_path / "plain", 0, cuda_graph=False))
    recorded = told(capped(tmp_path / "recorded", 0, cuda_graph=True))
    print(f"reserved: plain {plain['reserved'] / 2**30:.2f} GiB, recorded {recorded['reserved'] / 2**30:.2f}")
    assert recorded["reserved"] < plain["reserved"] * 1.3 and not recorded["plain"]


def test_what_fits_plain_is_trained_under_a_cap_of_memory(tmp_path: Path) -> None:
    plain = told(capped(tmp_path / "plain", 0, cuda_graph=False))
    tight = told(capped(tmp_path / "tight", plain["reserved"] * 1.03, cuda_graph=True))
    print(f"under the cap: {'plain' if tight['plain'] else 'recorded'} steps")
    assert tight["loss"] == pytest.approx(plain["loss"], rel=1e-3)


def test_what_does_not_fit_with_one_example_is_said(tmp_path: Path) -> None:
    done = capped(tmp_path / "small", 2**30 + 2**29)
    assert done.returncode != 0
    assert "does not fit even with one example" in done.stderr, done.stderr[-2000:]
