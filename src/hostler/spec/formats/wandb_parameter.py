"""Reads a parameter of a Weights & Biases sweep as one of ours.

Which distribution it has is said, or follows from what is given: values, a value, two whole ends, two ends,
mu and sigma. Errors are ValueErrors of one line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean

LARGEST = sys.float_info.max  # a whole number beyond it has no logarithm
DISTRIBUTIONS = (
    *("constant", "categorical", "categorical_w_probabilities", "int_uniform", "uniform", "q_uniform"),
    *("log_uniform", "log_uniform_values", "q_log_uniform", "q_log_uniform_values"),
    *("inv_log_uniform", "inv_log_uniform_values", "normal", "q_normal", "log_normal", "q_log_normal"),
    *("beta", "q_beta"),
)
_WORDS = ("value", "values", "distribution", "min", "max", "mu", "sigma", "q", "a", "b", "probabilities")


@dataclass(frozen=True)
class Parameter:
    """`count`: values it has in a grid; None if it is a continuous range."""

    ours: Any
    count: int | None
    notes: tuple[str, ...] = ()


def parameter(name: str, given: Any, method: Any) -> Parameter:
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is not a table with value, values, or min and max")
    for word in given:
        if word not in _WORDS:
            raise ValueError(f"no such key {word!r} ({did_you_mean(word, _WORDS, ', '.join(_WORDS))})")
    kind = given.get("distribution") or _inferred(given)
    if kind not in DISTRIBUTIONS:
        raise ValueError(f"no such distribution {kind!r} ({_near(str(kind))})")
    if kind == "constant":
        if "value" not in given:
            raise ValueError("a constant needs its value")
        return Parameter(_constant(given["value"]), 1)
    if kind.startswith("categorical"):
        return _categorical(name, given, method)
    if kind == "int_uniform":
        low, high = _ends(given)
        return Parameter({"min": low, "max": high, "int": True}, int(high) - int(low) + 1)
    if "uniform" in kind:
        return _uniform(kind, given)
    if "normal" in kind:
        return _normal(kind, given)
    raise ValueError(f"{kind} cannot be carried over (uniform, normal and their kin can)")


def _near(kind: str) -> str:
    return did_you_mean(kind, DISTRIBUTIONS, f"one of {', '.join(DISTRIBUTIONS)}")


def _inferred(given: Mapping[str, Any]) -> str:
    if "value" in given:
        return "constant"
    if "values" in given:
        return "categorical"
    if "min" in given and "max" in given:
        whole = all(
            isinstance(given[end], int) and not isinstance(given[end], bool) for end in ("min", "max")
        )
        return "int_uniform" if whole else "uniform"
    if "mu" in given or "sigma" in given:
        return "normal"
    raise ValueError("needs value, values, min and max, or a distribution")


def _constant(value: Any) -> Any:
    return {"value": value} if isinstance(value, (Mapping, list)) else value


def _categorical(name: str, given: Mapping[str, Any], method: Any) -> Parameter:
    """Probabilities mean something to a random search alone, and ours draws no configuration twice."""
    values = given.get("values")
    if not isinstance(values, list) or not values:
        raise ValueError(f"{values!r} is not a list of values")
    if "probabilities" in given and method == "random":
        raise ValueError("probabilities cannot be carried over (leave them out: all values are as likely)")
    notes = (f"{name}: probabilities are for a random search: not used",) if "probabilities" in given else ()
    return Parameter(list(values), len(values), notes)


def _uniform(kind: str, given: Mapping[str, Any]) -> Parameter:
    low, high = _ends(given)
    if "log" in kind and not kind.endswith("_values"):  # the ends are exponents
        low, high = (-high, -low) if kind.startswith("inv") else (low, high)
        low, high = _exponential(low), _exponential(high)
    log = "log" in kind
    ours: dict[str, Any] = {"min": low, "max": high, **({"log": True} if log else {})}
    if not kind.startswith("q_"):
        return Parameter(ours, None)
    quantum = _quantum(given)
    aligned = not log and Decimal(str(low)) % Decimal(str(quantum)) == 0
    steps = (Decimal(str(high)) - Decimal(str(low))) // Decimal(str(quantum))
    count = int(steps) + 1 if aligned else None
    return Parameter(
        {**ours, ("step" if aligned else "q"): quantum, **_whole(low, high, quantum, aligned)}, count
    )


def _whole(low: Any, high: Any, quantum: Any, aligned: bool) -> dict[str, Any]:
    whole = aligned and all(isinstance(one, int) for one in (low, high, quantum))
    return {"int": True} if whole else {}


def _normal(kind: str, given: Mapping[str, Any]) -> Parameter:
    ours: dict[str, Any] = {
        "log_normal" if "log" in kind else "normal": [given.get("mu", 0), given.get("sigma", 1)]
    }
    return Parameter({**ours, **({"q": _quantum(given)} if kind.startswith("q_") else {})}, None)


def _quantum(given: Mapping[str, Any]) -> Any:
    q = given.get("q", 1)
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 < q <= LARGEST:
        raise ValueError(f"q: {q!r} is not a number above 0")
    return q


def _ends(given: Mapping[str, Any]) -> tuple[Any, Any]:
    low, high = given.get("min", 0), given.get("max", 1)
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, (int, float)) or not abs(end) <= LARGEST:
            raise ValueError(f"{end!r} is not a number")
    return low, high


def _exponential(exponent: Any) -> float:
    try:
        return float(f"{math.exp(exponent):.12g}")
    except OverflowError:
        raise ValueError(
            f"{exponent} is an exponent here: e^{exponent} is too large (log_uniform_values?)"
        ) from None
