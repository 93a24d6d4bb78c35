"""Small pictures of three shapes, told apart by a network of one hidden layer; numpy alone."""

import argparse

import numpy as np

import hostler

SIDE = 12


def pictures(count, seed):
    """(pictures, labels): squares, crosses and rings at random places, in noise."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, count)
    found = draw.normal(0, 0.45, (count, SIDE, SIDE))
    for picture, label in zip(found, labels, strict=True):
        x, y = draw.integers(1, SIDE - 6, 2)
        shape = np.zeros((5, 5))
        if label == 0:
            shape[:] = 1
        elif label == 1:
            shape[2, :] = shape[:, 2] = 1
        else:
            shape[:] = 1
            shape[1:4, 1:4] = 0
        picture[y : y + 5, x : x + 5] += shape
    return found.reshape(count, -1), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    x, y = pictures(600, 0)
    test_x, test_y = pictures(300, 1)
    draw = np.random.default_rng(2)
    first = draw.normal(0, 0.08, (SIDE * SIDE, args.width))
    second = draw.normal(0, 0.08, (args.width, 3))
    with hostler.start(args) as run:
        for _ in run.epochs(args.epochs):
            losses = []
            for at in np.array_split(draw.permutation(len(x)), 12):
                seen = x[at] + draw.normal(0, args.noise, x[at].shape) if args.noise else x[at]
                hidden = np.maximum(seen @ first, 0)
                scores = np.exp((out := hidden @ second) - out.max(1, keepdims=True))
                share = scores / scores.sum(1, keepdims=True)
                losses.append(-np.log(share[np.arange(len(at)), y[at]] + 1e-9).mean())
                share[np.arange(len(at)), y[at]] -= 1
                back = share @ second.T * (hidden > 0)
                second -= args.lr * hidden.T @ share / len(at)
                first -= args.lr * seen.T @ back / len(at)
            if not np.isfinite(first).all():
                raise FloatingPointError(f"weights are no longer finite at lr={args.lr}")
            right = (np.maximum(test_x @ first, 0) @ second).argmax(1) == test_y
            if run.rank == 0:  # the others of a gang would log the same
                run.log(accuracy=float(right.mean()), loss=float(np.mean(losses)))


if __name__ == "__main__":
    main()
