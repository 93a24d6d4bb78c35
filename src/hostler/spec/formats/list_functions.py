"""Functions that a text may call, and the values that they take. Pure.

A value is one of Python's, a row of numbers, or an ordered set. A function gives what Python's or numpy's
would give, or a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.formats import numpy_numbers as numpy
from hostler.spec.formats.numpy_numbers import LONGEST, Numbers


@dataclass(frozen=True)
class OrderedSet:
    """Different items, in ascending order."""

    items: tuple[Any, ...]

    @classmethod
    def of(cls, items: Iterable[Any]) -> OrderedSet:
        different: dict[Any, Any] = {}
        for item in items:
            different.setdefault(plain_value(item), item)
        return cls(tuple(different[key] for key in sorted(different)))


def items_of(value: Any) -> Iterable[Any]:
    if isinstance(value, Numbers) and not value.single:
        return value.singles()
    if isinstance(value, OrderedSet):
        return value.items
    if isinstance(value, (list, tuple, range, str)):
        return value
    raise TypeError(f"{shown(value)} is not a list")


def index_of(value: Any) -> int:
    found = plain_value(value)
    if not isinstance(found, int):
        raise TypeError(f"{shown(value)} is not a place in a list")
    return found


def plain_value(value: Any) -> Any:
    """A value with single numbers as Python has them; rows are not compared."""
    if isinstance(value, Numbers):
        if not value.single:
            raise TypeError("a row is compared number by number: write a loop")
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(plain_value(item) for item in value)
    return value


def truth(value: Any) -> bool:
    return bool(plain_value(value))


def shown(value: Any) -> str:
    return (
        "a row of numbers"
        if isinstance(value, Numbers) and not value.single
        else repr(plain_value(value))[:40]
    )


def check_options(name: str, options: Mapping[str, Any]) -> None:
    known = _OPTIONS.get(name.replace("numpy.", "np."), ())
    for option in options:
        if option not in known:
            raise ValueError(f"{name} takes no {option}= here")


def _float(value: Any) -> float:
    return float(plain_value(value))


def _int(value: Any) -> int:
    return int(plain_value(value))


def _str(value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise TypeError("str() takes a number: write str(float(x)) or str(int(x))")
    return str(value)


def _round(value: Any, ndigits: Any = None) -> Any:
    if ndigits is None:
        return round(plain_value(value))
    if isinstance(value, Numbers):
        return numpy.rounded(value, ndigits)
    if abs(index_of(ndigits)) > 300:
        raise ValueError("too many digits")
    return round(value, index_of(ndigits))


def _range(*ends: Any) -> range:
    found = range(*(index_of(end) for end in ends))
    if found and abs((found[-1] - found[0]) // found.step) >= LONGEST:
        raise ValueError(f"a range of more than {LONGEST:,} values")
    return found


def _sorted(items: Any, reverse: Any = False) -> list[Any]:
    keyed = [(plain_value(item), item) for item in items_of(items)]
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0], reverse=bool(truth(reverse)))]


def _chosen(choose: Callable[..., Any]) -> Callable[..., Any]:
    """`min` and `max`, of several values or of one list."""

    def chosen(*items: Any) -> Any:
        return choose(items_of(items[0]) if len(items) == 1 else items, key=plain_value)

    return chosen


def _sum(items: Any) -> Any:
    parts = list(items_of(items))
    if all(isinstance(part, (int, float)) for part in parts):
        return sum(parts)
    if not all(isinstance(part, Numbers) for part in parts):
        raise TypeError("sum() adds numbers of one kind")
    total: Any = 0
    for part in parts:
        total = numpy.combine("+", total, part)
    return total


def _abs(value: Any) -> Any:
    return value.each(abs) if isinstance(value, Numbers) else abs(value)


def _len(value: Any) -> int:
    return len(list(items_of(value)))


SCALARS: dict[str, Callable[..., Any]] = {"float": _float, "int": _int, "str": _str}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **SCALARS,
    "range": _range,
    "list": lambda items=(): list(items_of(items)),
    "tuple": lambda items=(): tuple(items_of(items)),
    "set": lambda items=(): OrderedSet.of(items_of(items)),
    "sorted": _sorted,
    "reversed": lambda items: list(items_of(items))[::-1],
    "zip": lambda *rows: list(zip(*map(items_of, rows), strict=False)),
    "enumerate": lambda items, start=0: list(enumerate(items_of(items), index_of(start))),
    "round": _round,
    "abs": _abs,
    "min": _chosen(min),
    "max": _chosen(max),
    "sum": _sum,
    "len": _len,
    "np.arange": numpy.arange,
    "np.linspace": numpy.linspace,
    "np.logspace": numpy.logspace,
    "np.geomspace": numpy.geomspace,
    "np.power": numpy.power,
    "np.round": numpy.rounded,
    "np.array": numpy.numbers,
}
_OPTIONS = {
    "np.linspace": ("num", "endpoint"),
    "np.logspace": ("num", "endpoint", "base"),
    "np.geomspace": ("num", "endpoint"),
    "np.round": ("decimals",),
    "round": ("ndigits",),
    "sorted": ("reverse",),
    "enumerate": ("start",),
}
