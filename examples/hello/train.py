"""Fits a line to noisy points by gradient descent. It takes arguments, and prints."""

import argparse
import json
import random

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

chance = random.Random(0)
xs = [chance.uniform(-1, 1) for _ in range(64)]
points = [(x, 3 * x + 1 + chance.gauss(0, 0.1)) for x in xs]
slope = offset = 0.0

for epoch in range(1, args.epochs + 1):
    chance.shuffle(points)
    for start in range(0, len(points), args.batch):
        batch = points[start : start + args.batch]
        errors = [(slope * x + offset - y, x) for x, y in batch]
        slope -= args.lr * sum(2 * error * x for error, x in errors) / len(batch)
        offset -= args.lr * sum(2 * error for error, _ in errors) / len(batch)
    loss = sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)
    print(json.dumps({"epoch": epoch, "loss": loss}), flush=True)
