"""Writes data/a9a and data/a9a.t: rows of 123 zeros and ones in libsvm's format."""

import random
from pathlib import Path

WIDTH, ONES = 123, 14


def write(path, count, weights, chance):
    with open(path, "w") as file:
        for _ in range(count):
            columns = sorted(chance.sample(range(WIDTH), ONES))
            label = "+1" if sum(weights[c] for c in columns) + chance.gauss(0, 1) > 0 else "-1"
            file.write(f"{label} {' '.join(f'{c + 1}:1' for c in columns)}\n")


def main():
    chance = random.Random(3)
    weights = [chance.gauss(0, 1) for _ in range(WIDTH)]
    Path("data").mkdir(exist_ok=True)
    write(Path("data", "a9a"), 2000, weights, chance)
    write(Path("data", "a9a.t"), 1000, weights, chance)


if __name__ == "__main__":
    main()
