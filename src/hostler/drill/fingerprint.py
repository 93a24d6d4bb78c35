"""Fingerprints of state that must survive a restart: random states, weights, optimisers, schedulers.

Two marks are the same only if what they stand for is. Nothing here changes what it looks at, draws a random
number or imports a library that the script has not imported.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable, Mapping
from typing import Any

Marks = dict[str, str]

EDGE = 1024  # elements at either end of a large tensor that stand for it


def mark(value: object) -> str:
    """A mark of nested plain data, arrays and tensors."""
    digest = hashlib.blake2b(digest_size=8)
    _feed(digest, value)
    return digest.hexdigest()


def global_random() -> Marks:
    """The random states that every process has."""
    found = {"rng|python": mark(random.getstate())}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy.random" in sys.modules:
        found["rng|numpy"] = mark(numpy.random.get_state())
    if torch is not None and hasattr(torch, "get_rng_state"):
        found["rng|torch"] = mark(torch.get_rng_state())
        if torch.cuda.is_initialized():
            found["rng|cuda"] = mark(torch.cuda.get_rng_state_all())
    return found


def generator(made: Any) -> str:
    """A random generator of the script's own: Python's, NumPy's or torch's."""
    if isinstance(made, random.Random):
        return mark(made.getstate())
    inner = getattr(made, "bit_generator", None)
    return mark(inner.state if inner is not None else made.get_state())


def optimizer(label: str, made: Any) -> Marks:
    """Fingerprints of its weights, its accumulated state and its settings (such as the learning rate)."""
    groups = made.param_groups
    params = [p for group in groups for p in group["params"]]
    settings = [{k: v for k, v in group.items() if k != "params"} for group in groups]
    gathered = [made.state.get(p, {}) for p in params]
    return {
        f"weights|{label}": mark([p.detach() for p in params]),
        f"optimizer|{label}": mark(gathered),
        f"groups|{label}": mark(settings),
    }


def stateful(made: Any) -> str:
    """Anything with a state_dict."""
    return mark(made.state_dict())


def _feed(digest: Any, value: object) -> None:
    if isinstance(value, Mapping):
        digest.update(b"{%d" % len(value))
        for key in value:
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(b"[%d" % len(value))
        _feed_all(digest, value)
    elif isinstance(value, (bytes, bytearray)):
        digest.update(value)
    elif isinstance(value, (str, int, float, bool, complex, type(None))):
        digest.update(f"{type(value).__name__}{value!r};".encode())
    elif hasattr(value, "detach") and hasattr(value, "reshape"):
        _feed_tensor(digest, value)
    elif hasattr(value, "tobytes"):
        digest.update(f"{getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}".encode())
        digest.update(value.tobytes())
    else:
        digest.update(type(value).__name__.encode())  # its address or text may differ in every process


def _feed_all(digest: Any, values: Iterable[object]) -> None:
    for value in values:
        _feed(digest, value)


def _feed_tensor(digest: Any, tensor: Any) -> None:
    flat = tensor.detach().reshape(-1)
    digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    for part in (flat,) if flat.numel() <= 2 * EDGE else (flat[:EDGE], flat[-EDGE:]):
        plain = part.cpu().contiguous()
        digest.update(
            plain.view(dtype=sys.modules["torch"].uint8).numpy().tobytes() if plain.numel() else b""
        )
