"""Writes data/shapes.npz: small colour pictures of discs, squares and crosses on noise, 16 × 16 pixels."""

from pathlib import Path

import numpy as np

SIZE, KINDS = 16, 3


def picture(kind, chance):
    """One shape, somewhere, of some size and colour."""
    image = chance.integers(0, 90, (3, SIZE, SIZE))
    radius = chance.integers(3, 6)
    row, column = chance.integers(radius, SIZE - radius, 2)
    down, across = np.abs(np.arange(SIZE) - row)[:, None], np.abs(np.arange(SIZE) - column)[None, :]
    inside = [
        down**2 + across**2 <= radius**2,
        np.maximum(down, across) < radius,
        (np.minimum(down, across) < 1) & (np.maximum(down, across) <= radius),
    ][kind]
    return np.where(inside, chance.integers(140, 256, (3, 1, 1)), image).astype(np.uint8)


def split(count, chance):
    kinds = chance.integers(0, KINDS, count)
    return np.stack([picture(kind, chance) for kind in kinds]), kinds


def main():
    chance = np.random.default_rng(0)
    arrays = {}
    for name, count in (("train", 600), ("test", 300)):
        arrays[f"x_{name}"], arrays[f"y_{name}"] = split(count, chance)
    Path("data").mkdir(exist_ok=True)
    np.savez_compressed(Path("data", "shapes.npz"), **arrays)


if __name__ == "__main__":
    main()
