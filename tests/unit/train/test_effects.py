from __future__ import annotations

import logging
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hostler.train import custom
from hostler.train.graphs import effects
from hostler.train.models.normal import Centred

NET = """
import logging, random
import torch

calls = 0

class Net(torch.nn.Module):
    seen = []

    def __init__(self):
        super().__init__()
        self.body, self.count, self.log = torch.nn.Linear(4, 2), 0, {"losses": [1.0]}
        self.weights = [self.body.weight]
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.lerp_(x.mean(0), 0.1)
        return self.body(x)

class Counts(Net):
    def forward(self, x):
        self.count += 1
        return super().forward(x)

class Appends(Net):
    def forward(self, x):
        self.log["losses"].append(0.5)
        return super().forward(x)

class KeepsOnClass(Net):
    def forward(self, x):
        self.seen.append(len(x))
        return super().forward(x)

class CountsGlobally(Net):
    def forward(self, x):
        global calls
        calls += 1
        return super().forward(x)

class KeepsTensor(Net):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last

class Prints(Net):
    def forward(self, x):
        print("forward")
        return super().forward(x)

class Logs(Net):
    def forward(self, x):
        logging.getLogger("mine").warning("forward")
        return super().forward(x)

class Draws(Net):
    def forward(self, x):
        return super().forward(x) * (1 if random.random() < 2 else 0)

class DrawsOnHost(Net):
    def forward(self, x):
        return super().forward(x) * (1 if float(torch.rand(())) < 2 else 0)
"""


def made(folder: Path, name: str) -> torch.nn.Module:
    path = folder / "net.py"
    path.write_text(NET)
    model: torch.nn.Module = custom.find(f"{path}:{name}")()
    return model


def watched(model: torch.nn.Module, loss: Any = None) -> str:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        out = model(torch.ones(3, 4)).square().mean()
        (loss(out, None) if loss else out).backward()
        optimizer.step()

    step()
    with effects.EffectWatch(model, loss) as watch:
        step()
        step()
    return watch.found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Net", ""),
        ("Counts", "it changes count in Python"),
        ("Appends", "it changes log in Python"),
        ("KeepsOnClass", "it changes net.py:Net.seen in Python"),
        ("CountsGlobally", "it changes net.py:calls in Python"),
        ("KeepsTensor", "it changes last in Python"),
        ("Prints", "it prints or logs"),
        ("Logs", "it prints or logs"),
        ("Draws", "it draws random numbers on the host"),
        ("DrawsOnHost", "it draws random numbers on the host"),
    ],
)
def test_effect_of_a_step_in_python_is_noticed(name: str, said: str, tmp_path: Path) -> None:
    streams, factory = (sys.stdout, sys.stderr), logging.getLogRecordFactory()
    assert watched(made(tmp_path, name)) == said
    assert (sys.stdout, sys.stderr) == streams and logging.getLogRecordFactory() is factory


def test_loss_that_counts_its_calls_is_noticed(tmp_path: Path) -> None:
    calls: list[int] = []

    def loss(out: torch.Tensor, target: None) -> torch.Tensor:
        calls.append(1)
        return out

    assert watched(made(tmp_path, "Net"), loss) == "it changes the loss in Python"


def test_generator_of_a_models_own_is_noticed(tmp_path: Path) -> None:
    model, own = made(tmp_path, "Net"), random.Random(1)
    model.register_module("own", torch.nn.Identity())
    vars(model)["chance"] = own
    assert watched(model, lambda out, target: out + 0 * own.random()) == "it changes chance in Python"


def test_hooks_are_named_but_the_trainers_own_is_not(tmp_path: Path) -> None:
    model = made(tmp_path, "Net")
    model.register_forward_pre_hook(Centred(model, [0.5], [0.2], (0.0, 1.0)))
    assert effects.hooks(model) == ""
    handle = model.body.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    assert effects.hooks(model) == "layer body has a hook"
    handle.remove()
    model.body.weight.register_hook(lambda gradient: None)  # type: ignore[union-attr]
    assert effects.hooks(model) == "body.weight has a hook"
