"""Sentences as numbers, and what a checkpoint must say for `try.py` to build its model again.

Nothing here knows of a framework: both scripts and `try.py` share it. The vocabulary is made of the training
sentences: frequent words are one piece, rare ones several, and what was never seen is spelled out in bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PAD, BEGIN, END = 0, 1, 2
SIGNS = ["<pad>", "<begin>", "<end>"]  # their numbers, in order
HELD_OUT = 20  # of a single file every so many-th pair is not trained with
JUDGED = 200  # held-out pairs that are translated after each epoch

Pairs = list[tuple[str, str]]


class Vocabulary:
    """Pieces of words of one language, numbered; `text` is what `tokenizers` writes of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokenizer = Tokenizer.from_str(text)

    @classmethod
    def learned(cls, sentences: Sequence[str], size: int) -> Vocabulary:
        """At most so many pieces, or the 256 bytes if that is more."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=SIGNS,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(sentences, trainer)
        return cls(tokenizer.to_str())

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def numbers(self, sentence: str) -> list[int]:
        """Its pieces and the end, as many as it takes; ValueError for an empty sentence."""
        words = " ".join(sentence.split())
        if not words:
            raise ValueError("a sentence has at least one word")
        return [*self._tokenizer.encode(words).ids, END]

    def sentence(self, numbers: Iterable[int]) -> str:
        """The text up to the end of the sentence."""
        said = []
        for number in numbers:
            if number == END:
                break
            said.append(number)
        return self._tokenizer.decode(said).strip()


class Recipe:
    """What is needed to build the model again; tracked, so that it lies in every checkpoint."""

    def __init__(self, framework: str, source: str, target: str, shape: dict[str, Any]) -> None:
        self.framework, self.shape = framework, shape
        self.source, self.target = Vocabulary(source), Vocabulary(target)

    def state_dict(self) -> dict[str, Any]:
        return {
            "framework": self.framework,
            "source": self.source.text,
            "target": self.target.text,
            "shape": self.shape,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state != self.state_dict():
            raise ValueError("the checkpoint is of other words or another model: begin anew with --again")


def recipe(framework: str, pairs: Pairs, args: argparse.Namespace) -> Recipe:
    sides = [Vocabulary.learned([pair[side] for pair in pairs], args.vocabulary).text for side in (0, 1)]
    shape = {"width": args.width, "layers": args.layers, "heads": args.heads, "dropout": args.dropout}
    return Recipe(framework, *sides, shape)


def padded(rows: Sequence[list[int]], length: int = 0) -> list[list[int]]:
    """Rows of one length: that of the longest, or a given one."""
    length = max(length, *map(len, rows))
    return [row + [PAD] * (length - len(row)) for row in rows]


def most_pieces(source: int) -> int:
    """How long a translation may become before it is cut off."""
    return 2 * source + 16


def read(given: str) -> tuple[Pairs, Pairs]:
    """Pairs to train with, and pairs held out: of a file with two columns, or those of `make_data.py`."""
    under = os.environ.get("HOSTLER_DATA")
    place = Path(given) if given else Path(under, "pairs") if under else Path(__file__).parent / "data"
    if place.is_dir() and (place / "train.tsv").is_file():
        return columns(place / "train.tsv"), columns(place / "heldout.tsv")[:JUDGED]
    if not place.is_file():
        sys.exit(f"there is no {place}: python make_data.py, or --pairs FILE with two columns")
    found = columns(place)
    if len(found) < 2:
        sys.exit(f"{place} has {len(found)} pairs: too few to train with and to hold one out")
    held = found[::HELD_OUT]
    known = set(held)
    return [pair for pair in found if pair not in known], held[:JUDGED]


def columns(path: Path) -> Pairs:
    """The first two columns of a text file, parted by a tab; empty lines are passed over."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        sys.exit(f"{path} is not a text file in UTF-8")
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line.strip():
            continue
        if len(cells) < 2 or not cells[0] or not cells[1]:
            sys.exit(f"{path}, line {number}: not two columns with a tab between them")
        found.append((cells[0], cells[1]))
    return found


def parsed(what: str) -> argparse.Namespace:
    """The parameters, which are the same for both frameworks."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--pairs", default="", help="a text file with two columns; else the made language")
    parser.add_argument("--vocabulary", type=int, default=2000, help="pieces of words, of each language")
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
