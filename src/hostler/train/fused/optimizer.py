"""SGD and Adam over stacked parameters, with numbers of its own for each member.

The arithmetic is that of torch's optimisers, element by element; a learning rate is a vector on the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from hostler.train import momentum
from hostler.train.config import ADAM_LIKE, Config
from hostler.train.fused import kernels
from hostler.train.optimizer import trust

Tensors = Mapping[str, torch.Tensor]


class Optimizer(Protocol):
    slots: dict[str, dict[str, torch.Tensor]]  # what it remembers: kind → parameter → stacked tensor
    count: torch.Tensor  # steps that each member has taken

    def step(self, parameters: Tensors, gradients: Sequence[torch.Tensor], rate: torch.Tensor) -> None: ...

    def keep(self, members: torch.Tensor) -> None: ...


def build(configs: Sequence[Config], parameters: Tensors) -> Optimizer:
    if configs[0].optim_alg == "lamb":
        return Lamb(configs, parameters)
    kind = Adam if configs[0].optim_alg in ADAM_LIKE else Sgd
    return kind(configs, parameters)


def clip(gradients: Sequence[torch.Tensor], most: torch.Tensor) -> None:
    """Each member's gradients to a norm of at most its own; infinity: as they are."""
    norms = torch.stack([torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients])
    factor = (most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp(max=1.0)
    for tensor in gradients:
        tensor.mul_(like(factor, tensor))


def like(vector: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """A number per member, to go with a stacked tensor."""
    return vector.view(-1, *[1] * (tensor.ndim - 1))


class _Members:
    """The part that both share: decay by the kind of parameter, and vectors that shrink with the group."""

    kinds: tuple[str, ...] = ()

    def __init__(self, configs: Sequence[Config], parameters: Tensors) -> None:
        device = next(iter(parameters.values())).device
        self.count = torch.zeros(len(configs), device=device)
        self._device = device
        self._decays = (
            self._vector([config.weight_decay for config in configs]),
            self._vector([config.weight_decay_biases for config in configs]),
        )
        self.slots = {
            kind: {name: torch.zeros_like(tensor) for name, tensor in parameters.items()}
            for kind in self.kinds
        }

    def _vector(self, numbers: Sequence[float]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.float32, device=self._device)

    def _decay(self, name: str, parameter: torch.Tensor) -> torch.Tensor:
        return like(self._decays["bias" in name], parameter)

    def keep(self, members: torch.Tensor) -> None:
        for name, value in [*vars(self).items()]:
            if isinstance(value, torch.Tensor) and value.ndim == 1:
                setattr(self, name, value[members])
        self._decays = (self._decays[0][members], self._decays[1][members])
        self.slots = {
            kind: {n: tensor[members] for n, tensor in own.items()} for kind, own in self.slots.items()
        }


class Sgd(_Members):
    """With Nesterov's momentum; a momentum of nothing is plain descent."""

    kinds: tuple[str, ...] = ("momentum_buffer",)

    def __init__(self, configs: Sequence[Config], parameters: Tensors) -> None:
        super().__init__(configs, parameters)
        self._momentum = self._vector([momentum.one(config.momentum) for config in configs])

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Sequence[torch.Tensor], rate: torch.Tensor) -> None:
        self.count += 1
        for (name, weights), gradient in zip(parameters.items(), gradients, strict=True):
            slot, fast = self.slots["momentum_buffer"][name], kernels.of(weights)
            if fast is not None and weights.is_contiguous() and slot.is_contiguous():
                fast.sgd(weights, gradient, slot, self._decays["bias" in name], self._momentum, rate)
                continue
            factor = like(self._momentum, weights)
            gradient = torch.addcmul(gradient, weights, self._decay(name, weights))
            slot.mul_(factor).add_(gradient)
            gradient.addcmul_(slot, factor)
            weights.addcmul_(gradient, like(rate, weights), value=-1.0)


class Adam(_Members):
    kinds: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def __init__(self, configs: Sequence[Config], parameters: Tensors) -> None:
        name = configs[0].optim_alg
        self._apart, self._largest = name.endswith("w"), name.startswith("amsgrad")
        if self._largest:
            self.kinds = (*self.kinds, "max_exp_avg_sq")
        super().__init__(configs, parameters)
        betas = [momentum.betas(config.momentum) for config in configs]
        self._first = self._vector([first for first, _ in betas])
        self._second = self._vector([second for _, second in betas])
        self._eps = self._vector([config.ada_eps for config in configs])

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Sequence[torch.Tensor], rate: torch.Tensor) -> None:
        self.count += 1
        size = rate / (1 - self._first.double() ** self.count).float()
        root = (1 - self._second.double() ** self.count).sqrt().float()
        for (name, weights), gradient in zip(parameters.items(), gradients, strict=True):
            if self._apart:
                weights.mul_(1 - like(rate, weights) * self._decay(name, weights))
            else:
                gradient = torch.addcmul(gradient, weights, self._decay(name, weights))
            self._move(name, weights, gradient, size, root)

    def _move(self, name: str, weights: torch.Tensor, gradient: torch.Tensor, *sizes: torch.Tensor) -> None:
        size, root = (like(tensor, weights) for tensor in sizes)
        mean, square = self.slots["exp_avg"][name], self.slots["exp_avg_sq"][name]
        mean.lerp_(gradient, 1 - like(self._first, weights))
        second = like(self._second, weights)
        square.mul_(second).add_(gradient * gradient * (1 - second))
        if self._largest:
            largest = self.slots["max_exp_avg_sq"][name]
            torch.maximum(largest, square, out=largest)
            square = largest
        weights.addcdiv_(mean * size, square.sqrt().div_(root).add_(like(self._eps, weights)), value=-1.0)


class Lamb(Adam):
    """Adam whose step for each parameter is as long as the member's parameter."""

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Sequence[torch.Tensor], rate: torch.Tensor) -> None:
        self.count += 1
        first, second = (1 - tensor.double() ** self.count for tensor in (self._first, self._second))
        for (name, weights), gradient in zip(parameters.items(), gradients, strict=True):
            mean, square = self.slots["exp_avg"][name], self.slots["exp_avg_sq"][name]
            mean.lerp_(gradient, 1 - like(self._first, weights))
            part = like(self._second, weights)
            square.mul_(part).add_(gradient * gradient * (1 - part))
            root = (square / like(second.float(), weights)).sqrt_().add_(like(self._eps, weights))
            size = (mean / like(first.float(), weights)).div_(root)
            size.addcmul_(weights, self._decay(name, weights))
            ratio = trust(*(torch.linalg.vector_norm(tensor.flatten(1), dim=1) for tensor in (weights, size)))
            weights.addcmul_(size, like(ratio * rate, weights), value=-1.0)


def state_of(made: Optimizer, member: int) -> dict[str, Any]:
    """The state of a member's slots."""
    own = {
        kind: {name: tensor[member].clone() for name, tensor in slot.items()}
        for kind, slot in made.slots.items()
    }
    return {"slots": own, "count": made.count[member].clone()}


def load_state(made: Optimizer, member: int, state: Mapping[str, Any]) -> None:
    made.count[member] = state["count"]
    for kind, slot in made.slots.items():
        for name, tensor in slot.items():
            tensor[member].copy_(state["slots"][kind][name])
