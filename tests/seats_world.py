"""Runs that share this very process, as a worker would have given them: folders, and what is left in them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from hostler import env
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.sdk.shared_process import SharedRun
from hostler.sdk.start import CURRENT
from hostler.train.config import Config
from hostler.train.fused import seated

BASE = Config(
    dataset="sklearn/digits",
    model="linear/bias",
    batch_size=100,
    train_length=3,
    seed_model=1,
    seed_training=1,
    base_lr=0.05,
    device="cpu",
    checkpoint_every="5 steps",
    best_checkpoint_metric="test/last/loss",
)


@dataclass
class Cabin:
    """The runs of one group, and their folders of one attempt."""

    root: Path
    configs: Sequence[Config]
    attempt: int = 1

    def __post_init__(self) -> None:
        for number in range(len(self.configs)):
            self.folder(number).make({})

    def folder(self, number: int) -> Handoff:
        return Handoff(self.root / f"{self.attempt}" / f"run-{number}")

    def seat(self, number: int) -> SharedRun:
        of = f"run-{number}", "sweep", self.attempt
        return SharedRun((), self.root, self.folder(number), of)

    def variables(self, number: int) -> dict[str, str]:
        """What a process of its own would be given."""
        folder, of = self.folder(number), self.seat(number).of
        return {env.RUN_DIR: str(folder.folder), env.RUN: of[0], env.SWEEP: of[1], env.ATTEMPT: str(of[2])}

    def train(self, *numbers: int, limit: int | None = None) -> None:
        """All of them, or these."""
        chosen = numbers or range(len(self.configs))
        at = {self.seat(number).run: self.configs[number] for number in chosen}
        seated.train([self.seat(number) for number in chosen], lambda seat: at[seat.run], limit)

    def again(self, *, but: Sequence[int] = ()) -> Cabin:
        """The next attempt, from what the checkpoints hold; `but`: these begin anew."""
        CURRENT._runs.clear()  # as in a new process
        after = Cabin(self.root, self.configs, self.attempt + 1)
        for number in range(len(self.configs)):
            if number not in but:
                shutil.copytree(
                    self.folder(number).checkpoint, after.folder(number).checkpoint, dirs_exist_ok=True
                )
        return after

    def left(self, number: int) -> dict[str, Any]:
        return handoff.read(self.folder(number).seat) or {}

    def said(self, number: int) -> str:
        log = self.folder(number).log
        return log.read_text() if log.exists() else ""

    def stats(self, number: int) -> list[list[str]]:
        """Rows of stats.csv without what tells times."""
        lines = (self.folder(number).output / "stats.csv").read_text().splitlines()
        head = lines[0].split(",")
        timeless = [i for i, name in enumerate(head) if not name.endswith(("time", "stamp", "throughput"))]
        return [[line.split(",")[i] for i in timeless] for line in lines]

    def weights(self, number: int, name: str = "model") -> dict[str, torch.Tensor]:
        return load_file(str(self.folder(number).output / f"{name}.safetensors"))


class Killed(BaseException):
    """As if the process had been killed here: nothing of the code catches it."""
