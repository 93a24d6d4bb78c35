"""The same configuration several times: how often, and which parameter tells the repeats apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.params import merge, nest
from hostler.spec.space.fault import Fault
from hostler.spec.space.value import distinct, plain

MOST = 1_000_000


@dataclass(frozen=True)
class Repeat:
    """`values[r]` is what repeat r gets as parameter `key`; without a key it gets nothing."""

    count: int = 1
    key: str = ""
    values: tuple[Any, ...] = ()

    def applied(self, params: dict[str, Any], repeat: int) -> dict[str, Any]:
        if not self.key:
            return params
        if "." in self.key:
            return merge(params, nest({self.key: self.values[repeat]}))
        return {**params, self.key: self.values[repeat]}


def read_repeat(given: Any, constants: Mapping[str, Any]) -> Repeat:
    """3 · {seed: 3} · {seed: [1, 7, 9]}. With 3 alone, a constant whole `seed` counts up from its value."""
    if isinstance(given, Mapping):
        return _keyed(given)
    count = _count(given, ("repeat",))
    seed = constants.get("seed")
    if count > 1 and isinstance(seed, int) and not isinstance(seed, bool):
        return Repeat(count, "seed", tuple(range(seed, seed + count)))
    return Repeat(count)


def _keyed(given: Mapping[str, Any]) -> Repeat:
    if len(given) != 1:
        raise Fault(
            ("repeat",), f"{dict(given)!r} is not a number of repeats", hint="for example 3, or {seed: 3}"
        )
    key, values = next(iter(given.items()))
    path = ("repeat", str(key))
    if not isinstance(values, (list, tuple)):
        return Repeat(count := _count(values, path), str(key), tuple(range(count)))
    found = distinct([plain(value, path) for value in values])
    if not found:
        raise Fault(path, "an empty list: no repeats")
    return Repeat(len(found), str(key), found)


def _count(given: Any, path: tuple[str, ...]) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST:
        raise Fault(path, f"{given!r} is not a number of repeats", hint="for example 3, or {seed: 3}")
    return given
