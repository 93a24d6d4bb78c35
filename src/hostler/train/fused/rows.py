"""A convolution of each member's own weights as one product over rows of pixels.

A row of outputs is a product of the rows under the window with a banded matrix of the weights. That is some
times the arithmetic, all of it where a GPU is fast: cuDNN takes groups one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

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
