"""Writes data in libsvm's format: a9a and a9a.t, rows of 123 zeros and ones; covtype, 54 columns, 7 kinds."""

import random
from pathlib import Path

WIDTH, ONES = 123, 14


def write(path, count, weights, chance):
    with open(path, "w") as file:
        for _ in range(count):
            columns = sorted(chance.sample(range(WIDTH), ONES))
            label = "+1" if sum(weights[c] for c in columns) + chance.gauss(0, 1) > 0 else "-1"
            file.write(f"{label} {' '.join(f'{c + 1}:1' for c in columns)}\n")


def write_kinds(path, count, chance):
    """Rows of ten measures and two marks; the largest measure mostly tells the kind."""
    with open(path, "w") as file:
        for _ in range(count):
            measures = [round(chance.random(), 3) for _ in range(10)]
            kind = 1 + max(range(7), key=lambda n: measures[n] + chance.gauss(0, 0.1))
            marks = [11 + chance.randrange(4), 15 + chance.randrange(40)]
            columns = [f"{n + 1}:{value}" for n, value in enumerate(measures)] + [f"{n}:1" for n in marks]
            file.write(f"{kind} {' '.join(columns)}\n")


def main():
    chance = random.Random(3)
    weights = [chance.gauss(0, 1) for _ in range(WIDTH)]
    Path("data").mkdir(exist_ok=True)
    write(Path("data", "a9a"), 2000, weights, chance)
    write(Path("data", "a9a.t"), 1000, weights, chance)
    write_kinds(Path("data", "covtype.multiclass"), 4000, chance)


if __name__ == "__main__":
    main()
