"""torch and NumPy, for the tests that want them."""

from __future__ import annotations

from typing import Any

import pytest

import servers


@pytest.fixture
def torch() -> Any:
    try:
        import torch
    except ImportError:
        servers.missing("torch is not installed")
    torch.manual_seed(0)
    return torch


@pytest.fixture
def np() -> Any:
    try:
        import numpy
    except ImportError:
        servers.missing("NumPy is not installed")
    return numpy
