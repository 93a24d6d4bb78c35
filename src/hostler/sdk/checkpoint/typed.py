"""Python values as JSON that gives them back as they were: keys that are not text, tuples, bytes, NaN.

What JSON has is written as it is; everything else is an object with the key `$`, which names its type. What
cannot be kept is left out and named with its path. Only types listed here come back: nothing a file says is
looked up or called.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath, PurePosixPath
from typing import Any, Final

from hostler.errors import DamagedError

Json = Any  # what json.dumps takes
Keys = tuple[Any, ...]  # from the outermost container to a value

TAG: Final = "$"
LEFT_OUT: Final = object()
DEPTH: Final = 200
BIG: Final = 1000  # bits; json itself refuses integers of some thousand digits
_PLAIN: Final = {type(None), bool, int, float, str}
_FACTORIES: Final[dict[str, Callable[[], Any]]] = {
    f.__name__: f for f in (list, dict, set, int, float, str, tuple, bool, bytes, OrderedDict, Counter, deque)
}
_TIMES: Final = {"date": datetime.date, "time": datetime.time, "datetime": datetime.datetime}

# A value of a type that is not Python's own → its JSON, or LEFT_OUT where it is not known either.
Foreign = Callable[[Any, Keys], Json]
# An object with a tag that is not Python's own → its value.
Known = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Unsavable:
    """Something that cannot be kept: where it is, and what."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} ({self.why})"


def unknown(value: Any, keys: Keys) -> Json:
    """The foreign function of a program without foreign types."""
    return LEFT_OUT


def path_of(keys: Keys) -> str:
    """The path to a value as a person writes it: model.layers.0.weight."""
    return ".".join(key if isinstance(key, str) else repr(key) for key in keys)


@dataclass
class Encoder:
    foreign: Foreign = unknown
    lost: list[Unsavable] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)  # containers on the way to the present value

    def encode(self, value: Any, keys: Keys = ()) -> Json:
        """The value as JSON; LEFT_OUT if it cannot be kept, and then `lost` says so."""
        kind = type(value)
        if kind in _PLAIN:
            return _scalar(value)
        if kind in (list, tuple, dict, OrderedDict, defaultdict, Counter, deque, set, frozenset):
            return self._container(value, keys)
        made = _leaf(value)
        if made is LEFT_OUT:
            made = self.foreign(value, keys)
        if made is LEFT_OUT:
            self.lost.append(
                Unsavable(path_of(keys), f"a value of type {kind.__module__}.{kind.__qualname__}")
            )
        return made

    def _container(self, value: Any, keys: Keys) -> Json:
        if id(value) in self._open or len(keys) > DEPTH:
            self.lost.append(
                Unsavable(path_of(keys), "it contains itself" if id(value) in self._open else "deep")
            )
            return LEFT_OUT
        self._open.add(id(value))
        try:
            if isinstance(value, dict):
                return self._mapping(value, keys)
            return self._sequence(value, keys)
        finally:
            self._open.remove(id(value))

    def _sequence(self, value: Any, keys: Keys) -> Json:
        kind = type(value).__name__
        if _all_plain(value):
            items: list[Json] = list(value)
        else:
            made = (self.encode(item, (*keys, n)) for n, item in enumerate(value))
            items = [None if item is LEFT_OUT else item for item in made]
        if kind == "list":
            return items
        more = {"maxlen": value.maxlen} if kind == "deque" else {}
        return {TAG: kind, "v": items, **more}

    def _mapping(self, value: dict[Any, Any], keys: Keys) -> Json:
        kind = type(value)
        texts = all(type(key) is str for key in value) and TAG not in value
        if kind is dict and texts:
            made = ((key, self.encode(item, (*keys, key))) for key, item in value.items())
            return {key: item for key, item in made if item is not LEFT_OUT}
        pairs = []
        for key, item in value.items():
            pair = [self.encode(key, (*keys, key)), self.encode(item, (*keys, key))]
            if LEFT_OUT not in pair:
                pairs.append(pair)
        return {TAG: kind.__name__, "v": pairs, **self._more_of(value, keys)}

    def _more_of(self, value: dict[Any, Any], keys: Keys) -> dict[str, Json]:
        if isinstance(value, defaultdict):
            factory = value.default_factory
            name = getattr(factory, "__name__", "")
            if factory is not None and _FACTORIES.get(name) is not factory:
                self.lost.append(Unsavable(path_of(keys), f"the default factory {factory!r}"))
                return {}
            return {"factory": name} if factory else {}
        metadata = getattr(value, "_metadata", None)  # of a module's state_dict: versions of its layers
        return {"metadata": self.encode(metadata, (*keys, "_metadata"))} if metadata is not None else {}


def decode(made: Json, known: Known | None = None) -> Any:
    """The value that was encoded; DamagedError for what no encoder made."""
    try:
        return _decoded(made, known)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise DamagedError(f"a value cannot be read: {text[:200]}") from error


def _decoded(made: Json, known: Known | None) -> Any:
    if isinstance(made, list):
        return [_decoded(item, known) for item in made]
    if not isinstance(made, dict):
        return made
    if TAG not in made:
        return {key: _decoded(item, known) for key, item in made.items()}
    tag = made[TAG]
    reader = _READERS.get(tag)
    if reader is not None:
        return reader(made, lambda item: _decoded(item, known))
    if known is None:
        raise DamagedError(f"a value of the unknown type {tag!r}")
    return known(made)


def _scalar(value: Any) -> Json:
    if type(value) is float and not math.isfinite(value):
        return {TAG: "float", "v": repr(value)}
    if type(value) is int and value.bit_length() > BIG:
        return {TAG: "int", "v": hex(value)}
    return value


def _all_plain(values: Iterable[Any]) -> bool:
    """Whether JSON has them all as they are, at the speed of a built-in."""
    items = list(values)
    kinds = set(map(type, items))
    if not kinds <= _PLAIN:
        return False
    if float in kinds and not all(map(math.isfinite, (x for x in items if type(x) is float))):
        return False
    if int not in kinds:
        return True
    whole = items if len(kinds) == 1 else [x for x in items if type(x) is int]
    return max(max(whole).bit_length(), min(whole).bit_length()) <= BIG


def _leaf(value: Any) -> Json:
    kind = type(value)
    if kind in (bytes, bytearray):
        return {TAG: kind.__name__, "v": base64.b64encode(value).decode()}
    if kind is complex:
        return {TAG: "complex", "v": [_scalar(value.real), _scalar(value.imag)]}
    if kind in (range, slice):
        parts = [value.start, value.stop, value.step]
        return {TAG: kind.__name__, "v": parts} if {*map(type, parts)} <= {int, type(None)} else LEFT_OUT
    if kind in (Decimal, Fraction):
        return {TAG: kind.__name__, "v": str(value)}
    if isinstance(value, PurePath) and kind.__module__.startswith("pathlib"):
        return {TAG: "path", "v": str(value), "pure": kind is PurePosixPath}
    return _time(value)


def _time(value: Any) -> Json:
    kind = type(value)
    if kind is datetime.timedelta:
        return {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    if kind.__name__ in _TIMES and kind is _TIMES[kind.__name__]:
        zone = getattr(value, "tzinfo", None)
        if zone is None or type(zone) is datetime.timezone:
            return {TAG: kind.__name__, "v": value.isoformat()}
    return LEFT_OUT


Reader = Callable[[Mapping[str, Any], Callable[[Any], Any]], Any]


def _pairs(made: Mapping[str, Any], go: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    return [(go(key), go(item)) for key, item in made["v"]]


def _ordered(made: Mapping[str, Any], go: Callable[[Any], Any]) -> OrderedDict[Any, Any]:
    found = OrderedDict(_pairs(made, go))
    if made.get("metadata") is not None:
        found._metadata = go(made["metadata"])  # type: ignore[attr-defined]
    return found


def _path(made: Mapping[str, Any], go: Callable[[Any], Any]) -> PurePath:
    from pathlib import Path

    return PurePosixPath(made["v"]) if made.get("pure") else Path(made["v"])


_READERS: Final[dict[str, Reader]] = {
    "float": lambda made, go: float(made["v"]),
    "int": lambda made, go: int(made["v"], 16),
    "tuple": lambda made, go: tuple(map(go, made["v"])),
    "set": lambda made, go: set(map(go, made["v"])),
    "frozenset": lambda made, go: frozenset(map(go, made["v"])),
    "deque": lambda made, go: deque(map(go, made["v"]), made["maxlen"]),
    "dict": lambda made, go: dict(_pairs(made, go)),
    "OrderedDict": _ordered,
    "Counter": lambda made, go: Counter(dict(_pairs(made, go))),
    "defaultdict": lambda made, go: defaultdict(_FACTORIES.get(made.get("factory", "")), _pairs(made, go)),
    "bytes": lambda made, go: base64.b64decode(made["v"]),
    "bytearray": lambda made, go: bytearray(base64.b64decode(made["v"])),
    "complex": lambda made, go: complex(*map(go, made["v"])),
    "range": lambda made, go: range(*made["v"]),
    "slice": lambda made, go: slice(*made["v"]),
    "Decimal": lambda made, go: Decimal(made["v"]),
    "Fraction": lambda made, go: Fraction(made["v"]),
    "path": _path,
    "timedelta": lambda made, go: datetime.timedelta(*made["v"]),
    "date": lambda made, go: datetime.date.fromisoformat(made["v"]),
    "time": lambda made, go: datetime.time.fromisoformat(made["v"]),
    "datetime": lambda made, go: datetime.datetime.fromisoformat(made["v"]),
}
