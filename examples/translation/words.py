"""Sentences as numbers, and what a checkpoint must say for `try.py` to build its model again.

Nothing here knows of a framework: both scripts and `try.py` share it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAD, BEGIN, END = 0, 1, 2
LENGTH = 12  # of a sentence as numbers, its end included

Pairs = list[tuple[str, str]]


class Vocabulary:
    """The words of one language, numbered."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words, END + 1)}

    def __len__(self) -> int:
        return END + 1 + len(self.words)

    def numbers(self, sentence: str) -> list[int]:
        """LENGTH numbers; ValueError where the sentence cannot be said with these words."""
        words = sentence.lower().split()
        if unknown := [word for word in words if word not in self._numbers]:
            raise ValueError(f"never seen in training: {', '.join(unknown)}")
        if not 0 < len(words) < LENGTH:
            raise ValueError(f"a sentence has 1 to {LENGTH - 1} words, not {len(words)}")
        found = [*(self._numbers[word] for word in words), END]
        return found + [PAD] * (LENGTH - len(found))

    def text(self, numbers: Iterable[int]) -> str:
        """The words up to the end of the sentence."""
        said = []
        for number in numbers:
            if number == END:
                break
            said.append(self.words[number - END - 1] if number > END else "?")
        return " ".join(said)


class Recipe:
    """What is needed to build the model again; tracked, so that it lies in every checkpoint."""

    def __init__(self, framework: str, source: list[str], target: list[str], shape: dict[str, Any]) -> None:
        self.framework, self.shape = framework, shape
        self.source, self.target = Vocabulary(source), Vocabulary(target)

    def state_dict(self) -> dict[str, Any]:
        return {
            "framework": self.framework,
            "source": self.source.words,
            "target": self.target.words,
            "shape": self.shape,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state != self.state_dict():
            raise ValueError("the checkpoint is of other words or another model: begin anew with --again")


def recipe(framework: str, pairs: Pairs, args: argparse.Namespace) -> Recipe:
    sides = [sorted({word for pair in pairs for word in pair[side].split()}) for side in (0, 1)]
    shape = {"width": args.width, "layers": args.layers, "heads": args.heads, "dropout": args.dropout}
    return Recipe(framework, *sides, shape)


def read(split: str) -> Pairs:
    """The pairs that `make_data.py` wrote: by a worker into the data folder, by hand into `data`."""
    under = os.environ.get("HOSTLER_DATA")
    path = (Path(under, "pairs") if under else Path(__file__).parent / "data") / f"{split}.tsv"
    if not path.is_file():
        sys.exit(f"there is no {path}: python make_data.py")
    found = [line.split("\t") for line in path.read_text().splitlines()]
    return [(english, lumo) for english, lumo in found]


def parsed(what: str) -> argparse.Namespace:
    """The parameters, which are the same for both frameworks."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=2e-3, help="at its highest")
    parser.add_argument("--warmup", type=int, default=100, help="steps until then")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--sentences", type=int, default=10000, help="the first so many of the training data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save_every", default="1m", help='a snapshot: "5m", "500 steps" or "epoch"')
    return parser.parse_args()


def rate(step: int, warmup: int) -> float:
    """The share of `--lr` at a step: up in a line, then down with the root of the step."""
    return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)
