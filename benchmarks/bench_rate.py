"""Images a second of the trainer against a bare loop of the same model, on a GPU.

The bare loop has one batch that lies on the device, and does nothing but steps: forward under bf16, backward,
a fused update. The trainer draws its batches from a set on the device, keeps its sums, logs, is asked
whether it should stop, and saves checkpoints. They take turns, an epoch of one and as many steps of the
other, since a GPU that gets warm gets slower; the first turns, in which both compile and the trainer makes
the buffers of its checkpoints, do not count. Neither asks for kernels that give the same bits each time
(`deterministic: false`); what those cost the trainer is shown beside.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from row import Row

MODELS = Path(__file__).resolve().parent / "rate_models.py"
TURNS, WARM = 7, 3
NEEDED = ("torch", "torchvision")
COUNT, BYTES = 50_000, "bytes.npz"
RECORDED = {"compile": True, "cuda_graph": True}


def main() -> list[Row]:
    if any(find_spec(name) is None for name in NEEDED):
        print(f"bench_rate: needs {' and '.join(NEEDED)}; not measured", file=sys.stderr)
        return []
    import torch

    if not torch.cuda.is_available():
        print("bench_rate: needs a GPU; not measured", file=sys.stderr)
        return []
    print(f"bench_rate: {torch.cuda.get_device_name()}, torch {torch.__version__}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        return [
            *_large("ResNet-50, 224×224, bf16, compiled, batches of 256", "resnet_50"),
            *_large("ViT-S/16, 224×224, bf16, compiled, batches of 256", "vit_s16"),
            *_small("ResNet-18, 32×32, bf16, batches of 512"),
        ]


def _large(name: str, model: str) -> list[Row]:
    bare = Bare(model, 224, 256, compiled=True)
    asked = {
        "dataset": f"{MODELS}:large",
        "model": f"{MODELS}:{model}",
        "batch_size": 256,
        **RECORDED,
    }
    ours, floor = _in_turns(bare, 60, asked)
    same, _ = _in_turns(bare, 60, {**asked, "deterministic": True})
    return [
        Row(name, ours, floor, 1.02, "ms a step"),
        Row(f"{name}, `deterministic: true`", same, floor, None, "ms a step"),
    ]


def _small(name: str) -> list[Row]:
    """To an eager loop; and pictures of bytes that are read from a file, to those made on the device."""
    import numpy as np

    pixels = np.random.default_rng(0).integers(0, 256, (COUNT, 3, 32, 32), dtype=np.uint8)
    np.savez(BYTES, x_train=pixels, y_train=np.arange(COUNT) % 1000)
    asked = {"model": f"{MODELS}:resnet_18", "batch_size": 512, **RECORDED}
    bare = Bare("resnet_18", 32, 512, compiled=False)
    made, eager = _in_turns(bare, 120, {**asked, "dataset": f"{MODELS}:small"})
    read, _ = _in_turns(bare, 120, {**asked, "dataset": f"npz/{BYTES}", "data_dir": "."})
    return [
        Row(f"{name}, compiled: to an eager loop", made, eager, 1 / 1.3, "ms a step"),
        Row(f"{name}, from a file of bytes: to made ones", read, made, 1.05, "ms a step"),
    ]


def _in_turns(bare: Bare, steps: int, asked: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds a step: the trainer's, and the bare loop's."""
    from hostler.trainer import experiment_generator

    config = {
        "model_output_dim": 1000,
        "steps_per_epoch": steps,
        "train_length": TURNS,
        "data_splits_map": {"train": "train"},
        "amp": "bf16",
        "channels_last": True,
        "deterministic": False,
        "base_lr": 0.001,
        "save_best_checkpoint": False,
        "log_to_stdout": False,
        **asked,
    }
    ours, floor = list[float](), list[float]()
    began = time.perf_counter()
    for _ in experiment_generator(config):
        ours.append(time.perf_counter() - began)
        floor.append(bare.timed(steps))
        began = time.perf_counter()
    return tuple(statistics.median(one[WARM:]) / steps * 1e3 for one in (ours, floor))  # type: ignore[return-value]


class Bare:
    """What the trainer cannot beat."""

    def __init__(self, model: str, side: int, batch: int, *, compiled: bool) -> None:
        import rate_models
        import torch

        made: Any = getattr(rate_models, model)(None, None).cuda().to(memory_format=torch.channels_last)
        self._called = torch.compile(made) if compiled else made
        x = torch.randn(batch, 3, side, side, device="cuda")
        self._x = x.contiguous(memory_format=torch.channels_last)
        self._y = torch.randint(rate_models.CLASSES, (batch,), device="cuda")
        self._optimizer = torch.optim.SGD(
            made.parameters(), lr=0.001, momentum=0.9, nesterov=True, fused=True
        )

    def timed(self, steps: int) -> float:
        """Seconds for so many."""
        import torch

        repeatable = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(False)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            self._step()
        torch.cuda.synchronize()
        spent = time.perf_counter() - began
        torch.use_deterministic_algorithms(repeatable, warn_only=True)
        return spent

    def _step(self) -> None:
        import torch
        import torch.nn.functional as F

        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(self._called(self._x), self._y)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Runs of the trainer leave a store where they are."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
