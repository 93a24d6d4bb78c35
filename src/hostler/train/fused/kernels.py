"""Kernels for tensors of a group: Triton's, on a GPU where Triton is installed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch


def of(tensor: torch.Tensor, *sizes: int) -> Any:
    """The module of kernels for this tensor, and for others of these sizes; None: torch's own operations."""
    if not tensor.is_cuda or tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return None
    if tensor.get_device() != torch.cuda.current_device():  # kernels are launched on that one
        return None
    made = _made()
    return made if made is not None and made.fits(tensor.numel(), *sizes) else None


@cache
def _made() -> Any:
    """Its import needs Triton, which comes with torch's CUDA builds, but not with all of them; and Triton
    needs a C compiler."""
    if find_spec("triton") is None:
        return None
    try:
        module = import_module(f"{__package__}.triton_kernels")
        module.sgd(*(torch.zeros(1, 1, device="cuda") for _ in range(6)))
        return module
    except Exception:  # whatever a compiler says that is not there: torch's own operations do the same
        return None
