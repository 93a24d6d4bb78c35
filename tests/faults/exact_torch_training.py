"""A training that uses everything a checkpoint must keep: `exact_torch_training.py mlp|gpt`.

Dropout, random augmentation in two loader workers, shuffling, momentum, a scheduler, AMP with a scaler,
accumulated gradients, early stopping. It saves as often as it can, so that most kills hit a save.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import hostler

EPOCHS, SIZE, BATCH = 4, 96, 4
PAUSE = 0.005  # seconds of a step that does some work


class Points(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x = torch.linspace(0, 1, 8) * (index % 7) + torch.randn(8) * 0.1 + random.random() * 0.1
        return x, index % 7


class Words(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        begin = random.randrange(5)
        words = (torch.arange(begin, begin + 9) * (index % 3 + 1)) % 16
        return words[:-1], words[1:]


class Gpt(nn.Module):
    """One block, whose output weights are those of its input."""

    def __init__(self, words: int = 16, width: int = 16) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(8, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        hidden = self.embed(x) + self.place(torch.arange(x.shape[1]))
        return self.head(self.block(hidden, src_mask=mask, is_causal=True)).transpose(1, 2)  # type: ignore[no-any-return]


class EarlyStopping:
    def __init__(self) -> None:
        self.best, self.since, self.seen = float("inf"), 0, 0

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def see(self, value: float) -> None:
        self.since = 0 if value < self.best else self.since + 1
        self.best = min(self.best, value)


def build(kind: str) -> tuple[nn.Module, Dataset[Any]]:
    if kind == "gpt":
        return Gpt(), Words()
    layers = (nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 7))
    return nn.Sequential(*layers), Points()


class Training:
    def __init__(self, run: hostler.Run, kind: str) -> None:
        self.run, self.kind = run, kind
        self.model, data = build(kind)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, momentum=0.9)
        steps = EPOCHS * SIZE // BATCH
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=steps)
        self.scaler = torch.amp.GradScaler("cpu")
        self.stopping = EarlyStopping()
        self.loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=2)
        run.track(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            scaler=self.scaler,
            stopping=self.stopping,
            loader=self.loader,
        )

    def train(self) -> None:
        for _ in self.run.epochs(EPOCHS):
            for x, y in self.run.steps(self.loader) if self.kind == "gpt" else self.loader:
                self.step(x, y)
            self.run.log({"epoch/best": self.stopping.best})
        weights = {name: digest(tensor) for name, tensor in self.model.state_dict().items()}
        self.run.finish(weights=weights, stopping=self.stopping.state_dict())

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(x).float(), y)
        self.scaler.scale(loss / 2).backward()
        self.stopping.seen += 1
        if self.stopping.seen % 2 == 0:  # gradients of two batches
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
        self.scheduler.step()
        self.stopping.see(loss.item())
        self.run.log(loss=loss.item(), lr=self.scheduler.get_last_lr()[0])
        time.sleep(PAUSE)


def digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(bytes(tensor.detach().contiguous().view(-1).view(torch.uint8).tolist())).hexdigest()


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with hostler.start({"kind": sys.argv[1]}, save_every=0.01) as run:
        training = Training(run, sys.argv[1])
        print("begins", flush=True)
        training.train()
