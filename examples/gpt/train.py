"""A small GPT on the letters of a text, trained by as many workers as there are."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import hostler

SIZES = {"steps": 200, "width": 64, "layers": 2, "heads": 4, "length": 64, "batch": 16}


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asks, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.asks(self.first(x)).chunk(3, -1)
        heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
        seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(-2))
        return x + self.think(self.second(x))


class GPT(nn.Module):
    def __init__(self, letters: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.length = length
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, letters))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.blocks(self.letter(x) + self.place.weight[: x.shape[1]]))

    @torch.no_grad()
    def write(self, x: Tensor, count: int) -> Tensor:
        for _ in range(count):
            scores = self(x[:, -self.length :])[:, -1]
            x = torch.cat([x, torch.multinomial(scores.softmax(-1), 1)], 1)
        return x


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", default=__file__, help="what it learns; by default its own source")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--write", type=int, default=120, help="letters of its own at the end")
    return parser.parse_args()


def train(run: hostler.Run, args: argparse.Namespace, rank: int, world: int) -> None:
    text = Path(args.text).read_text()
    letters = sorted(set(text))
    data = torch.tensor([letters.index(one) for one in text])
    torch.manual_seed(0)
    model = GPT(len(letters), args.length, args.width, args.layers, args.heads)
    # unused parameters are looked for so that a restart sums gradients in the same order: the same bits
    wrapped = DistributedDataParallel(model, find_unused_parameters=True) if world > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    torch.manual_seed(rank)  # each rank reads other places of the text
    run.track(model=model, optimizer=optimizer)
    for _ in run.steps(args.steps):
        starts = torch.randint(len(data) - args.length, (args.batch,))
        x = torch.stack([data[n : n + args.length + 1] for n in starts])
        loss = nn.functional.cross_entropy(wrapped(x[:, :-1]).transpose(1, 2), x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            run.log(loss=loss.detach())
    if rank == 0 and args.write:
        print("".join(letters[n] for n in model.write(data[None, :8], args.write)[0]))


def main() -> None:
    args = arguments()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group("gloo")
    with hostler.start(args) as run:
        train(run, args, rank, world)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
