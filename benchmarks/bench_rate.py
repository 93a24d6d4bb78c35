"""Images a second of the trainer against loops of the same model on the same data, on a GPU.

The floor is a loop that somebody wrote by hand for this model alone: a whole step captured as a CUDA graph,
from the batch, which it takes out of the set on the device, to a fused update. Beside it stands the bare loop
that people write first: compiled, not captured, on one batch. The trainer draws its batches from a set on the
device, keeps its sums, logs, is asked whether it should stop, and saves checkpoints. All take turns, an epoch
of one and as many steps of the others, since a GPU that gets warm gets slower; the first turns, in which they
compile and the trainer makes the buffers of its checkpoints, do not count. Nobody asks for kernels that give
the same bits each time (`deterministic: false`).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import epoch_tail
from row import Row

MODELS = Path(__file__).resolve().parent / "rate_models.py"
TURNS, WARM = 6, 3
TAIL = 5.0  # ms of the host between two epochs, at most
NEEDED = ("torch", "torchvision")


@dataclass(frozen=True)
class Case:
    """A training, and how many times the captured loop's time it may take."""

    name: str
    model: str  # in rate_models.py, or of timm
    data: str  # in rate_models.py
    batch: int
    steps: int
    bound: float
    asked: tuple[str, ...] = ("compile",)  # keys of its config that are true

    @property
    def words(self) -> str:
        return " and ".join(f"`{key}: true`" for key in self.asked)


LARGE, SMALL = "224×224, bf16, batches of 256", "32×32, bf16, batches of 512"
CASES = (
    Case(f"ResNet-50, {LARGE}", "resnet_50", "large", 256, 40, 1.0),
    Case(f"ResNet-50, {LARGE}", "resnet_50", "large", 256, 40, 1.0, ("compile", "cuda_graph")),
    Case(f"ViT-S/16, {LARGE}", "vit_s16", "large", 256, 40, 1.0),
    Case(f"ResNet-18, {SMALL}", "resnet_18", "small", 512, 200, 1 / 0.95),
    Case(f"ResNet-50 on bytes, {LARGE}", "resnet_50_bytes", "large_bytes", 256, 40, 1.0),
    Case(f"timm's ResNet-50 on bytes, {LARGE}", "timm/resnet50", "large_bytes", 256, 40, 1.0),
)


def main() -> list[Row]:
    if any(find_spec(name) is None for name in NEEDED):
        print(f"bench_rate: needs {' and '.join(NEEDED)}; not measured", file=sys.stderr)
        return []
    import torch

    if not torch.cuda.is_available():
        print("bench_rate: needs a GPU; not measured", file=sys.stderr)
        return []
    print(f"bench_rate: {torch.cuda.get_device_name()}, torch {torch.__version__}", file=sys.stderr)
    words = os.environ.get("HOSTLER_RATES", "").split()  # only cases whose model holds one of them; `tail`
    chosen = [one for one in CASES if not words or any(word in one.model for word in words)]
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        for case in chosen:
            if case.model.startswith("timm/") and find_spec("timm") is None:
                print(f"bench_rate: {case.name} needs timm; not measured", file=sys.stderr)
                continue
            rows += _measured(case)
            torch.cuda.empty_cache()
        if not words or "tail" in words:
            rows.append(
                Row("the end of an epoch beside its steps: to the goal", epoch_tail.tail(), TAIL, 1.0, "ms")
            )
    return rows


def _measured(case: Case) -> list[Row]:
    captured, bare = Loop(case, captured=True), Loop(case, captured=False)
    ours, floor, plain = _in_turns(case, captured, bare)
    rates = [f"{name} {case.batch / took * 1e3:,.0f}" for name, took in
             (("ours", ours), ("bare", plain), ("captured", floor))]  # fmt: skip
    print(
        f"rate: {case.name}, {case.words}: {', '.join(rates)} img/s, {floor / ours:.3f} of captured",
        file=sys.stderr,
    )
    return [
        Row(f"{case.name}, {case.words}: to a captured loop", ours, floor, case.bound, "ms a step"),
        Row(f"{case.name}: a bare compiled loop to the captured one", plain, floor, None, "ms a step"),
    ]


def _in_turns(case: Case, *loops: Loop) -> tuple[float, ...]:
    """Milliseconds a step: the trainer's, and the loops'."""
    from hostler.trainer import experiment_generator

    config = {
        "dataset": f"{MODELS}:{case.data}",
        "model": case.model if "/" in case.model else f"{MODELS}:{case.model}",
        "batch_size": case.batch,
        **dict.fromkeys(case.asked, True),
        "model_output_dim": 1000,
        "steps_per_epoch": case.steps,
        "train_length": TURNS,
        "data_splits_map": {"train": "train"},
        "amp": "bf16",
        "channels_last": True,
        "deterministic": False,
        "base_lr": 0.001,
        "output_dir": "-".join(["out", case.model.replace("/", "-"), *case.asked]),
    }
    times: list[list[float]] = [[] for _ in range(1 + len(loops))]
    began = time.perf_counter()
    for _ in experiment_generator(config):
        times[0].append(time.perf_counter() - began)
        for own, loop in zip(times[1:], loops, strict=True):
            own.append(loop.timed(case.steps))
        began = time.perf_counter()
    log = (Path(config["output_dir"]) / "training.log").read_text()  # type: ignore[arg-type]
    for line in log.splitlines():
        if "plain steps" in line:
            print(f"bench_rate: {case.name}: {line}", file=sys.stderr)
    return tuple(statistics.median(own[WARM:]) / case.steps * 1e3 for own in times)


class Loop:
    """Steps of a model and nothing else. `captured`: all of a step, with its batch, is one CUDA graph."""

    def __init__(self, case: Case, *, captured: bool) -> None:
        import rate_models
        import torch

        config: Any = type("Size", (), {"batch_size": case.batch})
        data = getattr(rate_models, case.data)(config)
        made: Any = _model(case, data).cuda().to(memory_format=torch.channels_last)
        split = data.splits["train"]
        self._x = split.x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
        self._y, self._prepare = split.y, data.prepare
        whole = len(self._y) // case.batch
        self._order = torch.randperm(len(self._y), device="cuda")[: whole * case.batch].view(whole, -1)
        self._at = torch.zeros(1, dtype=torch.long, device="cuda")
        self._called = torch.compile(made)
        self._optimizer = torch.optim.SGD(
            made.parameters(), lr=0.001, momentum=0.9, nesterov=True, fused=True
        )
        self._step = self._captured() if captured else self._plain

    def timed(self, steps: int) -> float:
        """Seconds for so many."""
        import torch

        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            self._step()
        torch.cuda.synchronize()
        return time.perf_counter() - began

    def _plain(self) -> None:
        import torch
        import torch.nn.functional as F

        chosen = self._order.index_select(0, self._at)[0]
        x, y = self._x[chosen].permute(0, 3, 1, 2), self._y[chosen]
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(self._called(self._prepare(x) if self._prepare else x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._at.add_(1).remainder_(len(self._order))

    def _captured(self) -> Any:
        import torch

        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._plain()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        self._optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._plain()
        return graph.replay


def _model(case: Case, data: Any) -> Any:
    import rate_models

    if not case.model.startswith("timm/"):
        return getattr(rate_models, case.model)(None, data)
    from hostler.train.config import Config
    from hostler.train.models import timm_model

    return timm_model.build(case.model.removeprefix("timm/"), Config(model=case.model), data, 1000)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Runs of the trainer leave a store where they are."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
