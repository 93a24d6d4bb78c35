"""The parameters of a run, as the script reads them: `params.lr` and `params["lr"]`; nested tables as well.

Given as a dict, a dataclass, an `argparse.Namespace` or anything else with attributes. What a worker handed
over fills gaps, and wins where the script's own value is another.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hostler.errors import UsageError

LONGEST = 10_000  # letters of an array that is kept as it is
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object: it would be another parameter every time


class Params(Mapping[str, Any]):
    """Read-only; a nested table is a Params of its own."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {str(name): _wrap(value) for name, value in values.items()}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_values":
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(self._unknown(name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Params({self.plain()!r})"

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._values]

    def plain(self) -> dict[str, Any]:
        """A dict of dicts, for those who need one."""
        return {name: v.plain() if isinstance(v, Params) else v for name, v in self._values.items()}

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches  # only for a mistake

        near = get_close_matches(name, self._values, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self._values) or 'none'}"
        return f"no parameter named {name!r}; {meant}"


def collect(given: Any, handed: Mapping[str, Any] | None = None) -> Params:
    """The parameters a script gave to `start`, and those a worker handed over."""
    values = _table(given)
    for name, value in values.items():
        _refuse_endless(name, value)
    for name, value in (handed or {}).items():
        own = name if name in values else name.replace("-", "_")
        own = own if own in values else name
        if own not in values or not _same(values[own], value):
            values[own] = value
    return Params(values)


def defaults(given: Any) -> dict[str, Any]:
    """The defaults of a dataclass's fields; {} for anything else."""
    if not dataclasses.is_dataclass(given):
        return {}
    record = {}
    for field in dataclasses.fields(given):
        if field.default is not dataclasses.MISSING:
            record[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            record[field.name] = field.default_factory()
    return kept(Params(record))


def kept(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as JSON can hold them, nested tables as dotted names: what is stored and compared."""
    flat: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{inner}": v for inner, v in kept(value).items()})
        else:
            flat[name] = _plain(value)
    return flat


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """name → (before, now) of what is not the same; an absent one is shown as '(none)'."""
    names = [*before, *(name for name in now if name not in before)]
    pairs = {name: (before.get(name, "(none)"), now.get(name, "(none)")) for name in names}
    return {name: pair for name, pair in pairs.items() if not _same(*pair)}


def refuse_changed(
    before: Mapping[str, Any], now: Mapping[str, Any], allowed: bool | Iterable[str], run: str
) -> None:
    """UsageError if a run would go on with other parameters than it began with."""
    if allowed is True:
        return
    free = set(allowed or ())
    changed = {name: pair for name, pair in differences(before, now).items() if name not in free}
    if changed:
        shown = ", ".join(f"{name} was {old!r}, is {new!r}" for name, (old, new) in changed.items())
        raise UsageError(
            f"{run} began with other parameters: {shown}",
            hint='resume="never" starts a new run, '
            f"allow_changed={sorted(changed)!r} goes on with the new values",
        )


def _table(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Params):
        return given.plain()
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    dump = getattr(given, "model_dump", None) or getattr(given, "_asdict", None)
    if callable(dump):
        return dict(dump())
    if isinstance(given, (str, bytes, int, float, list, tuple, type)) or not hasattr(given, "__dict__"):
        raise UsageError(
            f"params cannot be of type {type(given).__name__}",
            hint="give a dict, a dataclass or parsed arguments",
        )
    return {name: value for name, value in vars(given).items() if not name.startswith("_")}


def _refuse_endless(name: str, value: Any) -> None:
    try:
        kept({name: value})
    except RecursionError:
        raise UsageError(
            f"parameter {name!r} contains itself or is nested too deeply", hint="give plain values and tables"
        ) from None


def _wrap(value: Any) -> Any:
    return Params(value) if isinstance(value, Mapping) and not isinstance(value, Params) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(_text(one) == _text(other))


def _text(value: Any) -> str:
    """Equal for what is the same once written down: 1 and 1.0, a path and its text, a tuple and a list."""
    plain = kept({"v": value})
    if isinstance(plain.get("v"), float) and plain["v"].is_integer():
        plain["v"] = int(plain["v"])
    return plain["v"] if isinstance(plain.get("v"), str) else json.dumps(plain, sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, (str, bool, int, float, type(None))):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        plain = sorted((_plain(v) for v in value), key=json.dumps)  # of one order, whatever is in it
        return sorted(plain) if {type(v) for v in plain} <= {int, float} else plain
    if isinstance(value, Mapping):
        return {str(name): _plain(v) for name, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(_table(value))
    item = getattr(value, "item", None)  # a NumPy scalar
    if callable(item) and getattr(value, "ndim", 0) == 0:
        return _plain(item())
    if callable(getattr(value, "tolist", None)) and getattr(value, "ndim", 0) > 0:
        return _array(value)
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name else _ADDRESS.sub("", str(value))


def _array(value: Any) -> Any:
    """All its numbers; of a large one its shape and what tells it from another."""
    numbers = _plain(value.tolist())
    text = json.dumps(numbers, default=str)
    if len(text) <= LONGEST:
        return numbers
    return f"{type(value).__name__} of shape {tuple(value.shape)}, crc32 {zlib.crc32(text.encode()):08x}"
