"""Trainings that go together against the same ones one after another: linear models, lenets.

On two cores, 108 linear classifiers (32,561 × 123, batches of 100) against two processes that train them
one by one, and the same through `hostler sweep`; on a GPU, these and 128 lenets (1×28×28, batches of 100)
against a bare eager loop and against one whose whole step is captured as a CUDA graph, and a thousand of each
through `hostler sweep`, against the goal. Data are made on the spot and lie on the device.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from row import Row

LINEAR, LENETS = 108, 128
FEW = 8  # runs one by one, for what all of them would take
CONFIG = """\
dataset: synthetic/123_2_32561
model: linear/bias
device: cpu
train_length: 2
seed_model: 1
seed_training: 1
"""
ON_GPU = """\
dataset: synthetic/{data}
model: {model}
train_length: 2
seed_model: 1
seed_training: 1
"""
SWEPT, GOALS = 1000, {"linear": 20.0, "lenets": 40.0}  # runs; ms for each
STEPS = 300
ALONE = """
import sys, time, torch
import torch.nn.functional as F
torch.set_num_threads(1)
device, shape, classes, count, model, steps = sys.argv[1], eval(sys.argv[2]), *map(eval, sys.argv[3:7])
captured = sys.argv[7:] == ["captured"]
x, y = torch.randn(count, *shape, device=device), torch.arange(count, device=device) % classes
net = model(shape, classes).to(device)
made = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
order = torch.randperm(count, device=device)
def step(place):
    some = order[place % (count // 100) * 100 :][:100]
    made.zero_grad()
    F.cross_entropy(net(x[some]), y[some]).backward()
    made.step()
table, at = order[: count // 100 * 100].view(-1, 100), torch.zeros(1, dtype=torch.long, device=device)
def whole():
    some = table.index_select(0, at)[0]
    made.zero_grad()
    F.cross_entropy(net(x[some]), y[some]).backward()
    made.step()
    at.add_(1).remainder_(len(table))
if captured:
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3): whole()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): whole()
    step = lambda place: graph.replay()
for place in range(30): step(place)
if device == "cuda": torch.cuda.synchronize()
began = time.perf_counter()
for place in range(steps): step(place)
if device == "cuda": torch.cuda.synchronize()
print((time.perf_counter() - began) / steps)
"""
BARE_LINEAR = "lambda s, c: torch.nn.Linear(s[0], c)"
BARE_LENET = (
    "lambda s, c: torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), "
    "torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 16, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), "
    "torch.nn.Flatten(), torch.nn.Linear(784, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), "
    "torch.nn.ReLU(), torch.nn.Linear(84, c))"
)


def main() -> list[Row]:
    if find_spec("torch") is None:
        print("bench_fused: needs torch; not measured", file=sys.stderr)
        return []
    import torch

    if torch.cuda.is_available():
        return [
            *_on_gpu("108 linear together", BARE_LINEAR, "linear/bias", LINEAR, (1 / 300, None, 1 / 40)),
            *_on_gpu("128 lenets together", BARE_LENET, "tiny/lenet", LENETS, (1 / 60, 1 / 40, 1 / 10)),
            _swept("linear", ON_GPU.format(data="123_2_32561", model="linear/bias"), GOALS["linear"]),
            _swept("lenets", ON_GPU.format(data="1x28x28_10_20000", model="tiny/lenet"), GOALS["lenets"]),
        ]
    shared, own = _on_cores(seeds=False), _on_cores(seeds=True)
    floor = _two_slots()
    together, alone = _sweep(CONFIG, LINEAR), _sweep(CONFIG, FEW, "--one-by-one") * LINEAR / FEW
    return [
        Row("108 linear together, a shared order: to two slots", shared * 1e3, floor * 1e3, 1 / 15, "ms"),
        Row("108 linear together, an order each: to two slots", own * 1e3, floor * 1e3, 1 / 3, "ms"),
        Row("108 linear through hostler sweep, together: to one by one", together, alone, 0.065, "s"),
    ]


def _two_slots() -> float:
    """Seconds for one step of all, by two processes at once that take half of them each."""
    words = [sys.executable, "-c", ALONE, "cpu", "(123,)", "2", "32561", BARE_LINEAR, str(STEPS * 5)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return max(float(one.communicate()[0]) for one in both) * LINEAR / 2


def _swept(name: str, config: str, goal: float) -> Row:
    """Milliseconds of each run of a whole sweep, from the command to its last end, to the goal."""
    took = _sweep(config, SWEPT) / SWEPT * 1e3
    return Row(f"{SWEPT:,} {name} through hostler sweep, each run: to the goal", took, goal, 1.0, "ms")


def _sweep(config: str, count: int, *words: str) -> float:
    """Seconds from the command to the last end, of runs that may go two at a time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = sweep_project(folder, config, count)
        command = [sys.executable, "-m", "hostler", "sweep", "-y", "--wait", *words, "sweep.yaml"]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return time.perf_counter() - began


def sweep_project(folder: Path, config: str, count: int) -> dict[str, str]:
    """Write a sweep of so many learning rates into a folder; the variables that keep all of it there."""
    rates = [round(1e-4 * (n + 1), 4) for n in range(count)]
    (folder / "config.yaml").write_text(config)
    (folder / "sweep.yaml").write_text(
        "command: python -m hostler train config.yaml\nresources: {cpus: 1}\n"
        f"env: {{OMP_NUM_THREADS: 1}}\nparameters: {{base_lr: {rates}}}\n"
    )
    own = {**os.environ, "HOSTLER_CACHE": str(folder / "cache"), "HOSTLER_STORE": str(folder / "store")}
    return {**own, "PATH": os.pathsep.join([str(Path(sys.executable).parent), own["PATH"]])}


def _on_cores(*, seeds: bool) -> float:
    import torch

    from hostler.train.fused.group import Group

    torch.set_num_threads(2)
    group = Group(_configs("linear/bias", "synthetic/123_2_32561", LINEAR, seeds=seeds), torch.device("cpu"))
    return _timed(group, lambda: None)


def _on_gpu(name: str, bare: str, model: str, members: int, bounds: tuple[float | None, ...]) -> list[Row]:
    """`bounds`: of a shared order and of an order each to the bare loop; to the captured one."""
    import torch

    from hostler.train.fused.group import Group

    linear = model.startswith("linear")
    shape, classes, count = ("(123,)", 2, 32561) if linear else ("(1, 28, 28)", 10, 20000)
    words = [sys.executable, "-c", ALONE, "cuda", shape, str(classes), str(count), bare, str(STEPS)]
    data = f"synthetic/{'123' if linear else '1x28x28'}_{classes}_{count}"
    alone, captured = (_alone(words) * members * 1e3, _alone([*words, "captured"]) * members * 1e3)
    shared, own = (
        _timed(
            Group(_configs(model, data, members, seeds=seeds), torch.device("cuda")), torch.cuda.synchronize
        )
        * 1e3
        for seeds in (False, True)
    )
    return [
        Row(f"{name}, a shared order: to one after another", shared, alone, bounds[0], "ms"),
        Row(f"{name}, an order each: to one after another", own, alone, bounds[1], "ms"),
        Row(f"{name}, a shared order: to a captured loop", shared, captured, bounds[2], "ms"),
    ]


def _alone(words: list[str]) -> float:
    """Seconds of a step of one training."""
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def _timed(group: object, wait: object) -> float:
    from hostler.train.fused.group import Group

    assert isinstance(group, Group) and callable(wait)
    group.stretch(0, group.span.steps(0))  # records what is replayed
    wait()
    began = time.perf_counter()
    group.stretch(group.span.first(1), group.span.steps(1))
    wait()
    return (time.perf_counter() - began) / group.span.steps(1)


def _configs(model: str, data: str, members: int, *, seeds: bool) -> list[object]:
    from hostler.train.config import Config

    base = Config(dataset=data, model=model, train_length=2, seed_model=1, seed_training=1)
    return [base.but(base_lr=0.001 * (n + 1), seed_training=n if seeds else 1) for n in range(members)]
