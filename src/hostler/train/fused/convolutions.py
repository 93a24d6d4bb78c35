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

from hostler.train.fused import kernels

WASTE = 5.0  # times the arithmetic, at most
FEW, MORE = 4, 12.0  # channels of an input whose rows are short, and what may be wasted on those


def suits(module: nn.Conv2d, width: int) -> bool:
    """Whether this way is worth it for pictures of this width."""
    plain = module.stride == (1, 1) and module.dilation == (1, 1) and module.groups == 1
    if not plain or isinstance(module.padding, str) or module.padding_mode != "zeros":
        return False
    most = MORE if module.in_channels <= FEW else WASTE
    return (width + 2 * module.padding[1]) / module.kernel_size[1] <= most


def conv(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: tuple[int, int]
) -> torch.Tensor:
    """`[member, batch, channel, row, column]`, or everybody's `[batch, channel, row, column]`, convolved with
    `[member, out, channel, window…]`."""
    added = weight.new_zeros(weight.shape[:2]) if bias is None else bias
    out: torch.Tensor = _Rows.apply(x, weight, added, padding)  # type: ignore[no-untyped-call]
    return out


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, padding: tuple[int, int]
    ) -> torch.Tensor:
        pictures, window = (x if x.ndim == 5 else x[None]), weight.shape[-2:]
        height = x.shape[-2] + 2 * padding[0] - window[0] + 1
        width = x.shape[-1] + 2 * padding[1] - window[1] + 1
        kind, batch, outputs = _kind(x), pictures.shape[1], weight.shape[1]
        rows = _windows(pictures, window, padding).to(kind)
        band = _band(weight.to(kind), width, beside=x.ndim == 4)
        added = bias.to(kind)[:, :, None].expand(-1, -1, width).flatten(1)
        ctx.save_for_backward(rows, band)
        ctx.shapes = x.shape, weight.shape, width, padding
        ctx.kinds = x.dtype, weight.dtype
        with _precision():
            if x.ndim == 5:
                out = torch.baddbmm(added[:, None], rows, band)
                return out.view(-1, batch, height, outputs, width).transpose(2, 3)
            wide = torch.addmm(added.flatten(), rows[0], band.transpose(0, 1).flatten(1))
        return wide.view(batch, height, -1, outputs, width).permute(2, 0, 3, 1, 4)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, band = ctx.saved_tensors
        seen, shape, width, padding = ctx.shapes
        members, gradient = shape[0], gradients[0].to(rows.dtype)
        with _precision():
            if len(seen) == 5:
                flat = gradient.transpose(2, 3).reshape(members, rows.shape[1], -1)
                of_rows = torch.bmm(flat, band.mT) if ctx.needs_input_grad[0] else None
                of_band = torch.bmm(rows.mT, flat)
                of_bias = flat.sum(1)
            else:
                flat = gradient.permute(1, 3, 0, 2, 4).reshape(rows.shape[1], -1)
                wide = band.transpose(0, 1).flatten(1).T
                of_rows = (flat @ wide)[None] if ctx.needs_input_grad[0] else None
                of_band = (rows[0].T @ flat).view(rows.shape[-1], members, -1).transpose(0, 1)
                of_bias = flat.sum(0).view(members, -1)
        back = None
        if of_rows is not None:
            pictures = seen if len(seen) == 5 else (1, *seen)
            back = _pixels(of_rows, torch.Size(pictures), shape[-2:], padding).view(seen).to(ctx.kinds[0])
        added = of_bias.view(members, -1, width).sum(-1).to(ctx.kinds[1])
        return back, _of_band(of_band, shape, width).to(ctx.kinds[1]), added, None


def _kind(x: torch.Tensor) -> torch.dtype:
    """The precision of products here: as `autocast` says, or that of the input."""
    if torch.is_autocast_enabled(x.device.type):
        return torch.get_autocast_dtype(x.device.type)
    return x.dtype


def _windows(x: torch.Tensor, window: torch.Size, padding: tuple[int, int]) -> torch.Tensor:
    """`[member, batch·row, window·channel·column]`."""
    high, wide = x.shape[-2] + 2 * padding[0], x.shape[-1] + 2 * padding[1]
    fast = kernels.of(x, x.shape[:3].numel() * high * wide * window[0])
    if fast is not None:
        rows: torch.Tensor = fast.rows_of(x, tuple(window), padding)
        return rows
    padded = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    tensor = padded.unfold(3, window[0], 1).permute(0, 1, 3, 5, 2, 4)
    return tensor.reshape(len(x), x.shape[1] * (high - window[0] + 1), -1)


def _pixels(
    of_rows: torch.Tensor, shape: torch.Size, window: torch.Size, padding: tuple[int, int]
) -> torch.Tensor:
    """The way back: the sum over all rows that a pixel is under."""
    fast = kernels.of(of_rows, shape.numel())
    if fast is not None:
        tensor: torch.Tensor = fast.sum_of_rows(of_rows.contiguous(), shape, tuple(window), padding)
        return tensor
    members, batch, channels, rows, columns = shape
    high, wide = rows + 2 * padding[0], columns + 2 * padding[1]
    height = high - window[0] + 1
    split = of_rows.view(members, batch, height, window[0], channels, wide)
    back = of_rows.new_zeros(members, batch, channels, high, wide)
    for place in range(window[0]):
        back[..., place : place + height, :] += split[:, :, :, place].transpose(2, 3)
    inner = back[..., padding[0] : padding[0] + rows, padding[1] : padding[1] + columns]
    return inner.contiguous()


def _band(weight: torch.Tensor, width: int, *, beside: bool) -> torch.Tensor:
    """`[member, window·channel·column, out·column]`: each output's weights, moved on by its column.

    A row one longer than the picture, repeated and cut into pieces of the picture's length, moves on by one
    each time. `beside`: all members' rows lie beside one another.
    """
    long = width + weight.shape[-1] - 1
    fast = kernels.of(weight, weight.numel() * long * width)
    if fast is not None:
        band: torch.Tensor = fast.band_of(weight, width, beside=beside)
        return band
    moved = F.pad(weight, (0, long + 1 - weight.shape[-1]))[..., None, :]
    moved = moved.expand(*moved.shape[:-2], width, long + 1).flatten(-2)[..., : width * long]
    moved = moved.view(*weight.shape[:-1], width, long)
    return moved.permute(0, 3, 2, 5, 1, 4).flatten(1, 3).flatten(2)


def _of_band(gradient: torch.Tensor, shape: torch.Size, width: int) -> torch.Tensor:
    """The way back: the sum over all places that one weight was moved to."""
    members, outputs, channels, window, taps = shape
    long = width + taps - 1
    fast = kernels.of(gradient)
    if fast is not None and gradient.stride(-1) == 1:
        tensor: torch.Tensor = fast.sum_of_band(gradient, shape, width)
        return tensor
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
