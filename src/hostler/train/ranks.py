"""The processes that train one model together: this one's share, and sums over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist

from hostler import env
from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.data.feed import Share


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    count: int = 1

    @property
    def share(self) -> Share:
        return Share(self.rank, self.count)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def wrap(self, model: torch.nn.Module, device: torch.device) -> torch.nn.Module:
        """What averages the gradients of all ranks."""
        if self.count == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(model, [device] if device.type == "cuda" else None)

    def close(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()


def meet(config: Config) -> Ranks:
    """All ranks find each other by the variables that torchrun and gangs set."""
    rank, count = env.rank()
    if count == 1 or not config.multi_gpu:
        return Ranks()
    if config.batch_size % count:
        raise SpecError(
            f"batch_size {config.batch_size} cannot be divided among {count} ranks",
            hint=f"{config.batch_size // count * count or count} can",
        )
    dist.init_process_group("nccl" if _device_type(config) == "cuda" else "gloo")
    return Ranks(rank, count)


def device_of(config: Config) -> torch.device:
    kind = _device_type(config)
    if kind != "cuda" or (config.device or "").startswith("cuda:"):
        return torch.device(config.device or kind)
    device = torch.device("cuda", env.local_rank() if config.multi_gpu else 0)
    torch.cuda.set_device(device)
    return device


def _device_type(config: Config) -> str:
    if config.device:
        return config.device.partition(":")[0]
    return "cuda" if torch.cuda.is_available() else "cpu"
