"""Milliseconds of the host at the end of an epoch, by what it does there: `python benchmarks/epoch_tail.py`.

Trains ResNet-18 on small pictures in short epochs under a profiler, on a GPU where there is one. The clock's
line is what an epoch takes beside the time that its row names; the others are calls of the trainer that lie
between the last step of an epoch and the first of the next.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import statistics
import tempfile
import time
from pathlib import Path

EPOCHS, STEPS = 12, 40
FIRST = 3  # what comes before compiles, records and makes buffers
PLACES = (  # (file, function) → words
    ("experiment.py", "_row", "sums read back, evaluation"),
    ("stats.py", "add", "stats.csv written"),
    ("run.py", "log", "metrics logged (all calls)"),
    ("experiment.py", "_report", "epoch reported"),
    ("folder.py", "say", "lines of training.log (all calls)"),
    ("loops.py", "_run", "loops of the run (all steps)"),
    ("taken.py", "take", "checkpoint copied"),
    ("looks.py", "arrived", "losses waited for"),
    ("feed.py", "_sent", "order of a pass"),
)


def tail(profile: cProfile.Profile | None = None, output: str = "out-tail") -> float:
    """Milliseconds that an epoch takes beside its steps, by the clock; its files come here. `profile` sees
    what takes them."""
    import torch

    from hostler.trainer import experiment_generator

    gpu = torch.cuda.is_available()
    config = {
        "dataset": "synthetic/3x32x32_10_20480" if gpu else "synthetic/3x8x8_10_1280",
        "model": "tiny/resnet_18" if gpu else "tiny/lenet",
        "batch_size": 512 if gpu else 32,
        "steps_per_epoch": STEPS,
        "train_length": EPOCHS,
        "data_splits_map": {"train": "train"},
        "amp": "bf16" if gpu else None,
        "channels_last": gpu,
        "deterministic": False,
        "base_lr": 0.001,
        "output_dir": output,
    }
    tails, began = list[float](), time.perf_counter()
    for epoch in experiment_generator(config):
        if epoch.number == FIRST and profile is not None:
            profile.enable()
        now = time.perf_counter()
        tails.append(now - began - epoch["train/time"])
        began = now
    if profile is not None:
        profile.disable()
    return statistics.median(tails[FIRST:]) * 1e3


def main() -> None:
    profile = cProfile.Profile()
    os.chdir(tempfile.mkdtemp())
    print(f"tail: {tail(profile):8.2f} ms an epoch beside its steps, by the clock")
    words = {(file, name): text for file, name, text in PLACES}
    for (path, _, function), (_, calls, own, whole, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        text = words.get((Path(path).name, function))
        if text is not None and "hostler" in path:
            each = whole / (EPOCHS - FIRST) * 1e3
            print(f"tail: {each:8.2f} ms  {text} ({calls} calls, {own * 1e3:.1f} ms their own)")


if __name__ == "__main__":
    main()
