"""The processes that train one model together: this one's share, and sums over all of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from hostler import env
from hostler.errors import MachineError, SpecError
from hostler.frozen import dataclass
from hostler.sdk.messages import say
from hostler.sdk.ranks import launch
from hostler.train.config import Config, divisors
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

    def wrap(self, model: torch.nn.Module, device: torch.device, config: Config) -> torch.nn.Module:
        """Wraps a model so that it averages the gradients of all ranks. `deterministic`: it sums them
        in the same order in the first iteration of a process as in all others."""
        if self.count == 1:
            return model
        made = torch.nn.parallel.DistributedDataParallel(
            model, [device] if device.type == "cuda" else None, find_unused_parameters=config.deterministic
        )
        if config.grad_exchange == "bf16":
            made.register_comm_hook(self.count, _in_half)
        return made

    def _together(self, value: int, how: dist.ReduceOp.RedOpType) -> int:
        if self.count == 1:
            return value
        kind = "cuda" if dist.get_backend() == "nccl" else "cpu"
        tensor = torch.tensor(value, dtype=torch.long, device=kind)
        dist.all_reduce(tensor, how)
        return int(tensor)

    def close(self) -> None:
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()


def _in_half(count: int, bucket: Any) -> Any:  # torch reads annotations, and takes none that are texts
    """The mean of gradients of so many ranks, sent in bf16. Ranks may meet on a CPU, too, which torch's own
    hook refuses."""
    sent = bucket.buffer().to(torch.bfloat16).div_(count)
    future = dist.all_reduce(sent, async_op=True).get_future()
    return future.then(lambda done: bucket.buffer().copy_(done.value()[0]))


del _in_half.__annotations__["bucket"], _in_half.__annotations__["return"]


@dataclass(frozen=True)
class Wanted:
    """Processes that `multi_gpu: true` starts here, and a line for people."""

    count: int
    said: str


def wanted(config: Config, devices: int) -> Wanted:
    """A process for each of so many visible devices, as far as they can share a batch. Pure."""
    if not config.multi_gpu:
        return Wanted(1, "")
    if config.device not in (None, "cuda"):
        return Wanted(1, f"multi_gpu: device {config.device} trains alone")
    if devices < 2:
        return Wanted(1, f"multi_gpu: {'one GPU is' if devices else 'no GPU is'} visible: one process trains")
    count = max(divisor for divisor in divisors(config.batch_size) if divisor <= devices)
    if count == devices:
        return Wanted(count, f"multi_gpu: {devices} devices are visible: a process trains on each")
    fewer = f"{count} of {devices} devices train: batch_size {config.batch_size} cannot be divided among more"
    return Wanted(count, f"multi_gpu: {fewer}")


def visible() -> int:
    """Devices of this machine that a training may use."""
    given = env.devices()
    if given is not None:
        return given
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def trained(config: Config, *, asked: bool = True) -> int | None:
    """Exit code of the processes that trained in place of this one, one on each visible device; None: this
    one trains. `asked`: whether somebody wrote `multi_gpu`, and so is told what became of it."""
    if launch.joined() or env.rank()[1] > 1:
        return None
    found = wanted(config, visible())
    if found.said and (asked or found.count > 1):
        say(found.said)
    return launch.launched(found.count) if found.count > 1 else None


def said(config: Config, together: TrainRanks) -> str:
    """A line for the log of a training: how many processes it has, and why not more."""
    if together.count > 1:
        shared = _device_type(config) == "cuda" and _share_gpus()
        how = f"; they share {torch.cuda.device_count()} GPU, and gradients go by the host" if shared else ""
        return f"{together.count} processes train together{how}"
    found = wanted(config, visible())
    if found.count == 1:
        return found.said
    return f"multi_gpu: {visible()} devices are visible, one trains: hostler train starts a process for each"


def meet(config: Config) -> TrainRanks:
    """All ranks find each other by the variables that torchrun and gangs set."""
    rank, count = env.rank()
    if count == 1:
        return TrainRanks()
    if not config.multi_gpu:
        raise SpecError(f"multi_gpu: false, but {count} processes have started", hint="start one")
    if config.batch_size % count and not env.elastic():
        raise SpecError(
            f"batch_size {config.batch_size} cannot be divided among {count} ranks",
            hint=f"batch_size: {config.batch_size // count * count or count} can",
        )
    dist.init_process_group("nccl" if _device_type(config) == "cuda" and not _share_gpus() else "gloo")
    return TrainRanks(rank, count)


def device_of(config: Config) -> torch.device:
    kind = _device_type(config)
    if kind != "cuda" or (config.device or "").startswith("cuda:"):
        return _usable(config.device or kind)
    number = env.local_rank() if config.multi_gpu else 0
    number = number % torch.cuda.device_count() if _share_gpus() else number
    device = _usable(f"cuda:{number}")
    torch.cuda.set_device(device)
    return device


def _share_gpus() -> bool:
    """Whether somebody counts more devices than there are GPUs. NCCL refuses processes that share one: they
    meet on the host."""
    return (env.devices() or 0) > torch.cuda.device_count() > 0


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
