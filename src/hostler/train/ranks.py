"""The processes that train one model together: this one's share, and sums over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist

from hostler import env
from hostler.errors import MachineError, SpecError
from hostler.train.config import Config
from hostler.train.data.feed import Share


@dataclass(frozen=True)
class TrainRanks:
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

    def most(self, value: int) -> int:
        """The largest of all ranks'."""
        return self._together(value, dist.ReduceOp.MAX)

    def first(self, value: int) -> int:
        """Rank 0's."""
        return self._together(value if self.leads else 0, dist.ReduceOp.SUM)

    def mine(self, whole: int) -> int:
        """How many of so many examples of a batch are this rank's."""
        return len(range(self.rank, whole, self.count))

    def wrap(self, model: torch.nn.Module, device: torch.device, *, repeatable: bool) -> torch.nn.Module:
        """Wraps a model so that it averages the gradients of all ranks. `repeatable`: it sums them
        in the same order in the first iteration of a process as in all others."""
        if self.count == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(
            model, [device] if device.type == "cuda" else None, find_unused_parameters=repeatable
        )

    def _together(self, value: int, how: dist.ReduceOp.RedOpType) -> int:
        if self.count == 1:
            return value
        kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
        found = torch.tensor(value, dtype=torch.long, device=kind)
        dist.all_reduce(found, how)
        return int(found)

    def close(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()


def meet(config: Config) -> TrainRanks:
    """All ranks find each other by the variables that torchrun and gangs set."""
    rank, count = env.rank()
    if count == 1:
        return TrainRanks()
    if not config.multi_gpu:
        raise SpecError(f"multi_gpu: false, and {count} processes have started", hint="start one")
    if config.batch_size % count and not env.elastic():
        raise SpecError(
            f"batch_size {config.batch_size} cannot be divided among {count} ranks",
            hint=f"batch_size: {config.batch_size // count * count or count} can",
        )
    dist.init_process_group("nccl" if _device_type(config) == "cuda" else "gloo")
    return TrainRanks(rank, count)


def device_of(config: Config) -> torch.device:
    kind = _device_type(config)
    if kind != "cuda" or (config.device or "").startswith("cuda:"):
        return _usable(config.device or kind)
    device = _usable(f"cuda:{env.local_rank() if config.multi_gpu else 0}")
    torch.cuda.set_device(device)
    return device


def _usable(name: str) -> torch.device:
    try:
        torch.empty(1, device=name).item()
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        first = str(error).partition("\n")[0]
        raise MachineError(
            f"there is no device {name} here: {first}", hint="device: cpu, or leave it out"
        ) from None


def _device_type(config: Config) -> str:
    if config.device:
        return config.device.partition(":")[0]
    return "cuda" if torch.cuda.is_available() else "cpu"
