"""Kernels of a group's step on a GPU, where torch's own take several passes over memory.

Written in Triton, which comes with torch's CUDA builds; without it, on a CPU and for tensors that are too
large for 32-bit places, `layers.py` and `optimizer.py` go on with torch's operations.

Values are `[member, batch, channel, row, column]` in any memory order.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# (Triton compiles these functions from their source: annotations there are its own)
from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK, SMALL = 1024, 128
DEAD = tl.constexpr(255)  # no input of the window gets a gradient


def fits(*sizes: int) -> bool:
    """Whether 32-bit numbers name every place of tensors of these sizes."""
    return all(0 < size < 2**31 - BLOCK for size in sizes)


@triton.jit
def _pool_forward(
    x, out, which, count, batch, sm, sb, sc, sh, sw,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, K: tl.constexpr, RELU: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    column, row = at % W, at // W % H
    channel, example = at // (W * H) % C, at // (W * H * C) % batch
    first = x + at // (W * H * C) // batch * sm + example * sb + channel * sc + row * K * sh + column * K * sw
    best = tl.load(first, inside, other=0.0)
    place = tl.zeros([N], tl.int32)
    for number in tl.static_range(1, K * K):
        value = tl.load(first + (number // K) * sh + (number % K) * sw, inside, other=0.0)
        better = (value > best) | (value != value)
        best, place = tl.where(better, value, best), tl.where(better, number, place)
    if RELU:
        below = best <= 0
        best, place = tl.where(below, 0.0, best), tl.where(below, DEAD, place)
    tl.store(out + at, best, inside)
    tl.store(which + at, place.to(tl.uint8), inside)


@triton.jit
def _pool_backward(
    gradient, which, back, count, batch, sm, sb, sc, sh, sw,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, K: tl.constexpr,
    HIGH: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    column, row = at % WIDE, at // WIDE % HIGH
    channel, whole = at // (WIDE * HIGH) % C, at // (WIDE * HIGH * C)
    seen = inside & (row < H * K) & (column < W * K)
    source = ((whole * C + channel) * H + row // K) * W + column // K
    place = tl.load(which + source, seen, other=DEAD).to(tl.int32)
    value = tl.load(gradient + source, seen, other=0.0)
    chosen = tl.where(place == row % K * K + column % K, value, 0.0)
    target = whole // batch * sm + whole % batch * sb + channel * sc + row * sh + column * sw
    tl.store(back + target, chosen, inside)


@triton.jit
def _rows(
    x, out, count, batch, sm, sb, sc, sh, sw,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, HEIGHT: tl.constexpr, K: tl.constexpr,
    WIDE: tl.constexpr, UP: tl.constexpr, LEFT: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    column, channel, tap = at % WIDE - LEFT, at // WIDE % C, at // (WIDE * C) % K
    row, whole = at // (WIDE * C * K) % HEIGHT + tap - UP, at // (WIDE * C * K * HEIGHT)
    seen = inside & (column >= 0) & (column < W) & (row >= 0) & (row < H)
    place = whole // batch * sm + whole % batch * sb + channel * sc + row * sh + column * sw
    tl.store(out + at, tl.load(x + place, seen, other=0.0), inside)


@triton.jit
def _of_rows(
    rows, back, count,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, HEIGHT: tl.constexpr, K: tl.constexpr,
    WIDE: tl.constexpr, UP: tl.constexpr, LEFT: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    column, row = at % W + LEFT, at // W % H + UP
    channel, whole = at // (W * H) % C, at // (W * H * C)
    total = tl.zeros([N], tl.float32)
    for tap in tl.static_range(K):
        line = row - tap
        seen = inside & (line >= 0) & (line < HEIGHT)
        place = (((whole * HEIGHT + line) * K + tap) * C + channel) * WIDE + column
        total += tl.load(rows + place, seen, other=0.0).to(tl.float32)
    tl.store(back + at, total, inside)


@triton.jit
def _band(
    weight, band, count, sm, sk,
    C: tl.constexpr, OUT: tl.constexpr, K: tl.constexpr, T: tl.constexpr, W: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    long: tl.constexpr = W + T - 1
    column, out = at % W, at // W % OUT
    row, member = at // (W * OUT) % (K * C * long), at // (W * OUT * K * C * long)
    tap = row % long - column
    channel, line = row // long % C, row // (long * C)
    source = (((member * OUT + out) * C + channel) * K + line) * T + tap
    value = tl.load(weight + source, inside & (tap >= 0) & (tap < T), other=0.0)
    tl.store(band + member * sm + row * sk + out * W + column, value, inside)


@triton.jit
def _of_band(
    band, weight, count, sm, sk,
    C: tl.constexpr, OUT: tl.constexpr, K: tl.constexpr, T: tl.constexpr, W: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < count
    tap, line = at % T, at // T % K
    channel, out, member = at // (T * K) % C, at // (T * K * C) % OUT, at // (T * K * C * OUT)
    first = band + member * sm + ((line * C + channel) * (W + T - 1) + tap) * sk + out * W
    total = tl.zeros([N], tl.float32)
    for column in range(W):
        total += tl.load(first + column * sk + column, inside, other=0.0).to(tl.float32)
    tl.store(weight + at, total, inside)


@triton.jit
def _sgd(weights, gradient, slot, decay, momentum, rate, size, N: tl.constexpr):
    member = tl.program_id(1)
    at = tl.program_id(0) * N + tl.arange(0, N)
    inside = at < size
    place = member * size + at
    factor = tl.load(momentum + member)
    value = tl.load(weights + place, inside, other=0.0)
    found = tl.load(gradient + place, inside, other=0.0) + value * tl.load(decay + member)
    kept = tl.load(slot + place, inside, other=0.0) * factor + found
    tl.store(slot + place, kept, inside)
    tl.store(weights + place, value - (found + kept * factor) * tl.load(rate + member), inside)


class Pool(torch.autograd.Function):
    """The largest of each window of K×K, beside one another; with `relu`, none below nothing."""

    @staticmethod
    def forward(ctx, x, window: int, relu: bool):
        members, batch, channels, height, width = x.shape
        shape = (members, batch, channels, height // window, width // window)
        out = torch.empty(shape, dtype=x.dtype, device=x.device)
        which = torch.empty(shape, dtype=torch.uint8, device=x.device)
        _pool_forward[_grid(out)](
            x, out, which, out.numel(), batch, *x.stride(),
            C=channels, H=shape[3], W=shape[4], K=window, RELU=relu, N=BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(which)
        ctx.window, ctx.like = window, torch.empty_like(x, device="meta")
        return out

    @staticmethod
    def backward(ctx, gradient):
        (which,), like, window = ctx.saved_tensors, ctx.like, ctx.window
        back = torch.empty_like(like, device=gradient.device)
        _pool_backward[_grid(back)](
            gradient.contiguous(), which, back, back.numel(), which.shape[1], *back.stride(),
            C=which.shape[2], H=which.shape[3], W=which.shape[4], K=window,
            HIGH=like.shape[3], WIDE=like.shape[4], N=BLOCK,
        )  # fmt: skip
        return back, None, None


def rows_of(x: torch.Tensor, window: tuple[int, int], padding: tuple[int, int]) -> torch.Tensor:
    """`[member, batch·row, window·channel·column]`: the rows under each row of outputs, padded."""
    members, batch, channels, height, width = x.shape
    high, wide = height + 2 * padding[0] - window[0] + 1, width + 2 * padding[1]
    out = x.new_empty(members, batch * high, window[0] * channels * wide)
    _rows[_grid(out)](
        x, out, out.numel(), batch, *x.stride(), C=channels, H=height, W=width, HEIGHT=high, K=window[0],
        WIDE=wide, UP=padding[0], LEFT=padding[1], N=BLOCK,
    )  # fmt: skip
    return out


def sum_of_rows(
    rows: torch.Tensor, shape: torch.Size, window: tuple[int, int], padding: tuple[int, int]
) -> torch.Tensor:
    """The way back: each pixel's sum over all rows that it is under; of pictures of this shape."""
    _, _, channels, height, width = shape
    high, wide = height + 2 * padding[0] - window[0] + 1, width + 2 * padding[1]
    back = rows.new_empty(shape)
    _of_rows[_grid(back)](
        rows, back, back.numel(), C=channels, H=height, W=width, HEIGHT=high, K=window[0], WIDE=wide,
        UP=padding[0], LEFT=padding[1], N=BLOCK,
    )  # fmt: skip
    return back


def band_of(weight: torch.Tensor, width: int, *, beside: bool) -> torch.Tensor:
    """`[member, window·channel·column, out·column]`: each output's weights, moved on by its column.
    `beside`: all members' rows lie beside one another, for one product with what all of them share."""
    members, outputs, channels, window, taps = weight.shape
    rows, columns = window * channels * (width + taps - 1), outputs * width
    if beside:
        band = weight.new_empty(rows, members, columns).transpose(0, 1)
    else:
        band = weight.new_empty(members, rows, columns)
    _band[_grid(band)](
        weight.contiguous(), band, band.numel(), band.stride(0), band.stride(1),
        C=channels, OUT=outputs, K=window, T=taps, W=width, N=BLOCK,
    )  # fmt: skip
    return band


def sum_of_band(gradient: torch.Tensor, shape: torch.Size, width: int) -> torch.Tensor:
    """The way back: the sum over all places that one weight was moved to."""
    _, outputs, channels, window, taps = shape
    weight = gradient.new_empty(shape)
    _of_band[(triton.cdiv(weight.numel(), SMALL),)](
        gradient, weight, weight.numel(), gradient.stride(0), gradient.stride(1),
        C=channels, OUT=outputs, K=window, T=taps, W=width, N=SMALL,
    )  # fmt: skip
    return weight


def sgd(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    slot: torch.Tensor,
    decay: torch.Tensor,
    momentum: torch.Tensor,
    rate: torch.Tensor,
) -> None:
    """A step of one stacked parameter; numbers are vectors with an entry for each member."""
    members, size = len(weights), weights[0].numel()
    grid = (triton.cdiv(size, BLOCK), members)
    _sgd[grid](weights, gradient.contiguous(), slot, decay, momentum, rate, size, N=BLOCK)


def _grid(tensor: torch.Tensor) -> tuple[int]:
    return (triton.cdiv(tensor.numel(), BLOCK),)
