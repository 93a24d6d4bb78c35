"""Layers with weights for each member of a stack.

A value is either shared by all members, `[batch, …]`, or stacked, `[member, batch, …]` in any memory
order: convolutions leave members beside channels, and what follows takes them as they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from hostler.frozen import dataclass
from hostler.train.fused import kernels
from hostler.train.fused.convolutions import conv, suits
from hostler.train.fused.dropout import PLAIN

State = Mapping[str, torch.Tensor]  # stacked parameters and buffers by name


@dataclass(frozen=True)
class Value:
    tensor: torch.Tensor
    stacked: bool


Layer = Callable[[Value, State, bool], Value]  # (input, weights, in training)
_EACH = (nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Identity)
_POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


def build(module: nn.Module, name: str = "") -> Layer:
    """The stacked form of a module; of one that is not known, by `vmap`."""
    if not _is_usual(module):
        return _mapped(module, name)
    if type(module) is nn.Sequential or (
        isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward
    ):
        return _chain(_children(_swapped([*module.named_children()]), name))
    if isinstance(module, _EACH):
        return lambda value, state, training: Value(module(value.tensor), value.stacked)
    if type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
        return lambda value, state, training: Value(
            value.tensor.flatten(2 if value.stacked else 1), value.stacked
        )
    if isinstance(module, _POOLS):
        return _pool(module)
    for kind, make in _MAKERS.items():
        if type(module) is kind:
            return make(module, name)
    return _mapped(module, name)


def _is_usual(module: nn.Module) -> bool:
    """Whether it does what its kind does, and no more."""
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    if isinstance(module, nn.Conv2d):
        return module.padding_mode == "zeros"
    if isinstance(module, nn.BatchNorm2d):
        return module.affine and module.track_running_stats and module.momentum is not None
    return not (isinstance(module, nn.MaxPool2d) and module.return_indices)


def _swapped(modules: list[tuple[str, nn.Module]]) -> list[tuple[str, nn.Module]]:
    """The largest of what is left above nothing is what is left of the largest: a quarter of the work."""
    found = list(modules)
    for place in range(len(found) - 1):
        if type(found[place][1]) is nn.ReLU and type(found[place + 1][1]) is nn.MaxPool2d:
            found[place], found[place + 1] = found[place + 1], found[place]
    return found


def _children(modules: list[tuple[str, nn.Module]], name: str) -> list[Layer]:
    """The layers of a chain; a pool and what follows it are one."""
    children = list[Layer]()
    for place, (key, child) in enumerate(modules):
        before = modules[place - 1][1] if place else None
        if type(child) is nn.ReLU and before is not None and _is_plain_pool(before):
            children[-1] = _pool(before, then=child)
        else:
            children.append(build(child, f"{name}{key}."))
    return children


def _chain(layers: list[Layer]) -> Layer:
    def run(value: Value, state: State, training: bool) -> Value:
        for layer in layers:
            value = layer(value, state, training)
        return value

    return run


def _linear(module: nn.Linear, name: str) -> Layer:
    def run(value: Value, state: State, training: bool) -> Value:
        weight, bias = state[f"{name}weight"], state.get(f"{name}bias")
        members, outputs, _ = weight.shape
        if not value.stacked:  # one product for all
            wide = F.linear(value.tensor, weight.flatten(0, 1), None if bias is None else bias.flatten())
            return Value(wide.view(*wide.shape[:-1], members, outputs).movedim(-2, 0), True)
        x = value.tensor
        return Value(_product(x.flatten(1, -2), weight, bias).view(*x.shape[:-1], outputs), True)

    return run


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if bias is None:
        return torch.bmm(x, weight.mT)
    return torch.baddbmm(bias[:, None], x, weight.mT)


def _conv(module: nn.Conv2d, name: str) -> Layer:
    def run(value: Value, state: State, training: bool) -> Value:
        weight, bias = state[f"{name}weight"], state.get(f"{name}bias")
        members = len(weight)
        if value.tensor.is_cuda and suits(module, value.tensor.shape[-1]):
            return Value(conv(value.tensor, weight, bias, module.padding), True)  # type: ignore[arg-type]
        x, groups = (beside(value.tensor), members) if value.stacked else (value.tensor, 1)
        out = F.conv2d(
            x,
            weight.flatten(0, 1),
            None if bias is None else bias.flatten(),
            module.stride,
            module.padding,
            module.dilation,
            groups * module.groups,
        )
        return Value(apart(out, members), True)

    return run


def _norm(module: nn.BatchNorm2d, name: str) -> Layer:
    def run(value: Value, state: State, training: bool) -> Value:
        mean, var = state[f"{name}running_mean"], state[f"{name}running_var"]
        members = len(mean)
        x = value.tensor if value.stacked else value.tensor.expand(members, *value.tensor.shape)
        if training:
            state[f"{name}num_batches_tracked"].add_(1)
        out = F.batch_norm(
            beside(x),
            mean.view(-1),
            var.view(-1),
            state[f"{name}weight"].flatten(),
            state[f"{name}bias"].flatten(),
            training,
            module.momentum,  # type: ignore[arg-type]
            module.eps,
        )
        return Value(apart(out, members), True)

    return run


def _is_plain_pool(module: nn.Module) -> bool:
    """Whether its windows are squares beside one another."""
    if type(module) is not nn.MaxPool2d or not _is_usual(module) or module.ceil_mode:
        return False
    sides = {side for given in (module.kernel_size, module.stride) for side in _both(given)}
    return len(sides) == 1 and _both(module.padding) == (0, 0) and _both(module.dilation) == (1, 1)


def _both(given: Any) -> tuple[int, int]:
    return (given, given) if isinstance(given, int) else tuple(given)


def _pool(module: nn.Module, then: nn.Module | None = None) -> Layer:
    """`then`: a ReLU that follows."""
    plain = _is_plain_pool(module)

    def run(value: Value, state: State, training: bool) -> Value:
        fast = kernels.of(value.tensor) if plain and value.stacked else None
        if fast is not None:
            side = _both(module.kernel_size)[0]
            return Value(fast.Pool.apply(value.tensor, side, then is not None), True)
        x = beside(value.tensor) if value.stacked else value.tensor
        out = module(x) if then is None else then(module(x))
        return Value(apart(out, len(value.tensor)) if value.stacked else out, value.stacked)

    return run


def _mapped(module: nn.Module, name: str) -> Layer:
    """Any module, by torch's own vectorisation."""
    own = [*(n for n, _ in module.named_parameters()), *(n for n, _ in module.named_buffers())]

    def run(value: Value, state: State, training: bool) -> Value:
        module.train(training)
        weights = {one: state[f"{name}{one}"] for one in own}

        def alone(weights: dict[str, torch.Tensor], x: torch.Tensor) -> Any:
            return functional_call(module, weights, (x,))

        out = torch.vmap(alone, in_dims=(0, 0 if value.stacked else None))(weights, value.tensor)
        return Value(out, True)

    return run


def beside(x: torch.Tensor) -> torch.Tensor:
    """`[member, batch, channel, …]` → `[batch, member·channel, …]`."""
    return x.movedim(0, 1).flatten(1, 2)


def apart(x: torch.Tensor, members: int) -> torch.Tensor:
    """And back."""
    return x.view(len(x), members, -1, *x.shape[2:]).movedim(1, 0)


def draws(module: nn.Module) -> bool:
    """Whether it draws random numbers in training that `dropout.py` has no way for."""
    every = (one for one in module.modules() if isinstance(one, nn.modules.dropout._DropoutNd))
    return any(type(one) not in PLAIN and one.p > 0 for one in every)


_MAKERS: dict[type[nn.Module], Callable[..., Layer]] = {
    nn.Linear: _linear,
    nn.Conv2d: _conv,
    nn.BatchNorm2d: _norm,
}
