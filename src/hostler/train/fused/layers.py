"""Layers with weights for each member of a stack.

A value is either shared by all members, `[batch, …]`, or stacked, `[member, batch, …]` in any memory
order: convolutions leave members beside channels, and what follows takes them as they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from hostler.frozen import dataclass

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
        return _chain([build(child, f"{name}{key}.") for key, child in _swapped([*module.named_children()])])
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
        if value.stacked and value.tensor.is_cuda and suits(module, value.tensor.shape[-1]):
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


def _pool(module: nn.Module) -> Layer:
    def run(value: Value, state: State, training: bool) -> Value:
        if not value.stacked:
            return Value(module(value.tensor), False)
        return Value(apart(module(beside(value.tensor)), len(value.tensor)), True)

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
    """Whether it draws random numbers in training: a member would draw others than it does alone."""
    return any(isinstance(one, nn.modules.dropout._DropoutNd) and one.p > 0 for one in module.modules())


_MAKERS: dict[type[nn.Module], Callable[..., Layer]] = {
    nn.Linear: _linear,
    nn.Conv2d: _conv,
    nn.BatchNorm2d: _norm,
}


# A convolution of each member's own weights as one product over rows of pixels.
#
# A row of outputs is a product of the rows under the window with a banded matrix of the weights. That is some
# times the arithmetic, all of it where a GPU is fast: cuDNN takes groups one after another.


WASTE = 5.0  # times the arithmetic, at most


def suits(module: nn.Conv2d, width: int) -> bool:
    """Whether this way is worth it for pictures of this width."""
    plain = module.stride == (1, 1) and module.dilation == (1, 1) and module.groups == 1
    if not plain or isinstance(module.padding, str) or module.padding_mode != "zeros":
        return False
    return (width + 2 * module.padding[1]) / module.kernel_size[1] <= WASTE


def conv(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: tuple[int, int]
) -> torch.Tensor:
    """`[member, batch, channel, row, column]`, convolved with `[member, out, channel, window…]`."""
    wide = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    added = weight.new_zeros(weight.shape[:2]) if bias is None else bias
    out: torch.Tensor = _Rows.apply(wide, weight, added)  # type: ignore[no-untyped-call]
    return out


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        window = weight.shape[-2:]
        height, width = x.shape[-2] - window[0] + 1, x.shape[-1] - window[1] + 1
        rows, band = _windows(x, window[0], height), _band(weight, width)
        ctx.save_for_backward(rows, band)
        ctx.shapes = x.shape, weight.shape, height, width
        outputs = weight.shape[1]
        added = bias[:, None, :, None].expand(-1, 1, -1, width).flatten(2)
        with _precision():
            out = torch.baddbmm(added, rows, band)
        return out.view(*x.shape[:2], height, outputs, width).transpose(2, 3)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, band = ctx.saved_tensors
        seen, shape, height, width = ctx.shapes
        members, batch = seen[:2]
        flat = gradients[0].transpose(2, 3).reshape(members, batch * height, -1)
        with _precision():
            of_rows, of_band = torch.bmm(flat, band.mT), torch.bmm(rows.mT, flat)
        window = shape[-2]
        of_rows = of_rows.view(members, batch, height, window, *seen[2:3], seen[-1])
        back = flat.new_zeros(seen)
        for place in range(window):
            back[..., place : place + height, :] += of_rows[:, :, :, place].transpose(2, 3)
        of_bias = flat.sum(1).view(members, -1, width).sum(-1)
        return back, _of_band(of_band, shape, width), of_bias


def _windows(x: torch.Tensor, window: int, height: int) -> torch.Tensor:
    """`[member, batch·row, window·channel·column]`."""
    seen = x.unfold(3, window, 1).permute(0, 1, 3, 5, 2, 4)
    return seen.reshape(len(x), x.shape[1] * height, -1)


def _band(weight: torch.Tensor, width: int) -> torch.Tensor:
    """`[member, window·channel·column, out·column]`: each output's weights, moved on by its column.

    A row one longer than the picture, repeated and cut into pieces of the picture's length, moves on by one
    each time.
    """
    long = width + weight.shape[-1] - 1
    moved = F.pad(weight, (0, long + 1 - weight.shape[-1]))[..., None, :]
    moved = moved.expand(*moved.shape[:-2], width, long + 1).flatten(-2)[..., : width * long]
    moved = moved.view(*weight.shape[:-1], width, long)
    return moved.permute(0, 3, 2, 5, 1, 4).flatten(1, 3).flatten(2)


def _of_band(gradient: torch.Tensor, shape: torch.Size, width: int) -> torch.Tensor:
    """The way back: the sum over all places that one weight was moved to."""
    members, outputs, channels, window, taps = shape
    long = width + taps - 1
    split = gradient.view(members, window, channels, long, outputs, width).permute(0, 4, 2, 1, 5, 3)
    flat = F.pad(split.flatten(-2), (0, width))  # rows one longer again
    return flat.view(members, outputs, channels, window, width, long + 1).sum(-2)[..., :taps]


@contextmanager
def _precision() -> Iterator[None]:
    """As exact as convolutions are here, no more and no less."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
