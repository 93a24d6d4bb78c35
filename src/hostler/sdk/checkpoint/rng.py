"""Random number generators: the global ones, and those a program made itself.

A snapshot is plain values that a checkpoint can keep. torch and NumPy are looked at only if the script has
imported them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

from hostler.sdk.checkpoint import torch_state

Snapshot = Mapping[str, Any]


def snapshot() -> Snapshot:
    """The state of every shared generator."""
    record: dict[str, Any] = {"python": random.getstate()}
    np: Any = _numpy()
    if np is not None:
        record["numpy"] = np.random.get_state()
    torch = torch_state.module()
    if torch is not None:
        record["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            record["cuda"] = torch.cuda.get_rng_state_all()
        if torch.backends.mps.is_available():
            record["mps"] = torch.mps.get_rng_state()
    return record


def put_back(state: Snapshot) -> list[str]:
    """Set every shared generator that the snapshot knows; returns what could not be set, in words."""
    random.setstate(state["python"])
    np: Any = _numpy()
    if np is not None and "numpy" in state:
        np.random.set_state(state["numpy"])
    torch = torch_state.module()
    if torch is None:
        return []
    if "torch" in state:
        torch.set_rng_state(state["torch"])
    if "mps" in state and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])
    return _put_back_cuda(torch, state.get("cuda", []))


def is_generator(value: Any) -> bool:
    """Whether it is a generator that a program made itself."""
    np: Any = _numpy()
    torch = torch_state.module()
    return (
        (isinstance(value, random.Random) and not isinstance(value, random.SystemRandom))
        or (np is not None and isinstance(value, (np.random.Generator, np.random.RandomState)))
        or (torch is not None and isinstance(value, torch.Generator))
    )


def state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    return generator.get_state()


def set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _numpy() -> Any:
    module = sys.modules.get("numpy")
    return module if module is not None and hasattr(module, "random") else None


def _put_back_cuda(torch: Any, states: list[Any]) -> list[str]:
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for index, state in enumerate(states[:there]):
        torch.cuda.set_rng_state(state, index)
    if len(states) > there:
        return [f"the random states of {len(states) - there} GPUs that this machine lacks"]
    return []
