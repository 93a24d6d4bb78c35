"""Trains a transformer that translates, with PyTorch, in one process or in as many as there are."""

from __future__ import annotations

import argparse
import functools
import math
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import hostler
import words
from words import BEGIN, END, PAD, Recipe


class Transformer(nn.Module):
    """Encoder and decoder; `translate` takes the likeliest word each time."""

    def __init__(
        self, sources: int, targets: int, *, width: int, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(sources, width), nn.Embedding(targets, width)
        self.body = body(width, layers, heads, dropout)
        self.out = nn.Linear(width, targets)
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=width**-0.5)  # as large as the waves that are added

    def forward(self, source: Tensor, said: Tensor) -> Tensor:
        """For each word that was said, what may follow it."""
        length, empty = said.shape[1], source == PAD
        later = torch.ones(length, length, dtype=torch.bool, device=said.device).triu(1)
        decoded = self.body(
            self._placed(self.source, source),
            self._placed(self.target, said),
            tgt_mask=later,
            src_key_padding_mask=empty,
            memory_key_padding_mask=empty,
        )
        return self.out(decoded)

    def _placed(self, embedding: nn.Embedding, numbers: Tensor) -> Tensor:
        width = embedding.embedding_dim
        return embedding(numbers) * math.sqrt(width) + places(numbers.shape[1], width, numbers.device)

    @torch.no_grad()
    def translate(self, source: Tensor) -> Tensor:
        self.eval()
        said = torch.full((len(source), 1), BEGIN, device=source.device)
        for _ in range(words.most_pieces(source.shape[1])):
            following = self(source, said)[:, -1].argmax(-1, keepdim=True)
            said = torch.cat([said, following], 1)
            if (said == END).any(1).all():
                break
        self.train()
        return said[:, 1:]


def body(width: int, layers: int, heads: int, dropout: float) -> nn.Transformer:
    given = {"batch_first": True, "norm_first": True}
    one = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, **given)
    # without nested tensors, which warn of themselves
    encoder = nn.TransformerEncoder(one, layers, nn.LayerNorm(width), enable_nested_tensor=False)
    return nn.Transformer(width, heads, layers, layers, 4 * width, dropout, custom_encoder=encoder, **given)


@functools.lru_cache(maxsize=256)
def places(length: int, width: int, device: torch.device) -> Tensor:
    """Waves of different lengths, by which the model knows a word's place."""
    place = torch.arange(length)[:, None]
    turn = place * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([turn.sin(), turn.cos()], -1).reshape(length, width).to(device)


def build(recipe: Recipe) -> Transformer:
    return Transformer(len(recipe.source), len(recipe.target), **recipe.shape)


def tensors(recipe: Recipe, pairs: words.Pairs) -> tuple[Tensor, Tensor]:
    """Both sides of a batch, each as wide as its longest sentence."""
    source = torch.tensor(words.padded([recipe.source.numbers(one) for one, _ in pairs]))
    return source, torch.tensor(words.padded([recipe.target.numbers(other) for _, other in pairs]))


def accuracy(model: Transformer, recipe: Recipe, pairs: words.Pairs, device: torch.device) -> float:
    """The share of sentences that it translates without a fault."""
    found = model.translate(tensors(recipe, pairs)[0].to(device)).tolist()
    right = [recipe.target.sentence(row) == other for row, (_, other) in zip(found, pairs, strict=True)]
    return sum(right) / len(right)


def join() -> tuple[int, int, torch.device]:
    """Rank, number of ranks and device; one process that was started alone needs no group."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    if world > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return rank, world, device


def train(run: hostler.Run, args: argparse.Namespace, rank: int, world: int, device: torch.device) -> None:
    pairs, heldout = words.read(args.pairs)
    recipe = words.recipe("torch", pairs, args)
    torch.manual_seed(args.seed)
    model = build(recipe).to(device)
    torch.manual_seed(args.seed + rank)  # dropout of each rank's own
    # unused parameters are looked for so that a restart sums gradients in the same order: the same bits
    wrapped = DistributedDataParallel(model, find_unused_parameters=True) if world > 1 else model
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: words.rate(step, args.warmup))
    data = pairs[: args.sentences]
    sampler = DistributedSampler(data, world, rank, seed=args.seed)
    loader = DataLoader(data, args.batch_size, sampler=sampler, collate_fn=functools.partial(tensors, recipe))
    run.track(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader, recipe=recipe)
    run.keep_best("accuracy", "max")
    for epoch in run.epochs(args.epochs):
        sampler.set_epoch(epoch)
        for source, target in run.steps(loader):
            source, target = source.to(device), target.to(device)
            begin = torch.full_like(target[:, :1], BEGIN)
            scores = wrapped(source, torch.cat([begin, target[:, :-1]], 1))
            loss = nn.functional.cross_entropy(scores.transpose(1, 2), target, ignore_index=PAD)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if rank == 0:
                run.log(loss=loss.detach())
        if rank == 0:
            run.log(accuracy=accuracy(model, recipe, heldout, device))


def main() -> None:
    args = words.parsed(__doc__)
    rank, world, device = join()
    with hostler.start(args, save_every=args.save_every) as run:
        train(run, args, rank, world, device)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
