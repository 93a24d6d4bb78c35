"""Fits a line by noisy gradient descent. It knows nothing of hostler, and runs alone, too."""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    saved = Path(os.environ.get("HOSTLER_CHECKPOINT_DIR", "."), "state.json")
    state = json.loads(saved.read_text()) if saved.exists() else {"step": 0, "slope": 0.0, "offset": 0.0}
    while state["step"] < arguments.steps:
        loss = step(state, arguments.lr)
        print(json.dumps({"step": state["step"], "loss": round(loss, 5)}), flush=True)
        if state["step"] % 10 == 0:
            save(saved, state)
        time.sleep(0.08)  # a real model takes its time


def step(state: dict[str, float], lr: float) -> float:
    """Train on one batch; a step always draws the same one, so that a resumed run repeats nothing."""
    state["step"] += 1
    draw = random.Random(state["step"])
    points = [(x, 2 * x - 1 + draw.gauss(0, 0.1)) for x in (draw.uniform(-1, 1) for _ in range(16))]
    errors = [(x, state["slope"] * x + state["offset"] - y) for x, y in points]
    state["slope"] -= lr * 2 * sum(error * x for x, error in errors) / len(points)
    state["offset"] -= lr * 2 * sum(error for _, error in errors) / len(points)
    return sum(error * error for _, error in errors) / len(points)


def save(path: Path, state: dict[str, float]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(state))
    fresh.replace(path)


if __name__ == "__main__":
    main()
