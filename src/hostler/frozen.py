"""`dataclass(frozen=True)`, made in a tenth of the time: who starts a command or a run waits for all of them.

The standard library writes and compiles the methods of each class as it is defined; here they are the same
few functions for all. Its `fields`, `replace` and `asdict` work with these. A class of which many objects are
made gets an initializer of its own then: the standard library's, which takes less time for each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

MANY = 50  # objects of a class, from which on its own initializer pays

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool) -> Callable[[type], type]:
        assert frozen
        return _made


def _made(cls: type) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else a signature is looked for, which takes long
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    rows = dataclasses.fields(made)
    values = _getter(row.name for row in rows if row.compare)
    hashed = _getter(row.name for row in rows if (row.compare if row.hash is None else row.hash))
    shown = [row.name for row in rows if row.repr]

    def same(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def show(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    own = vars(cls)
    made.__init__ = _initializer(made, rows)
    made.__eq__, made.__hash__ = own.get("__eq__", same), lambda self: hash(hashed(self))
    made.__repr__ = own.get("__repr__", show)
    made.__setattr__ = made.__delattr__ = _refuse
    return cls


def _initializer(cls: Any, rows: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    names = tuple(row.name for row in rows)
    plain = {row.name: row.default for row in rows if row.default is not dataclasses.MISSING}
    factories = {
        row.name: row.default_factory for row in rows if row.default_factory is not dataclasses.MISSING
    }
    count = 0

    def initialize(self: Any, *args: Any, **given: Any) -> None:
        nonlocal count
        count += 1
        if count == MANY:
            cls.__init__ = _written_out(rows)
        state = dict(zip(names, args, strict=False))
        for name in names[len(args) :]:
            if name in given:
                state[name] = given.pop(name)
            elif name in plain:
                state[name] = plain[name]
            elif name in factories:
                state[name] = factories[name]()
            else:
                raise TypeError(f"{cls.__name__}() has no {name!r}")
        if given or len(args) > len(names):
            raise TypeError(f"{cls.__name__}() has no place for {list(given) or args[len(names) :]}")
        self.__dict__.update(state)

    return initialize


def _written_out(rows: tuple[dataclasses.Field[Any], ...]) -> Any:
    """The initializer that the standard library writes for these fields."""
    again = [
        (row.name, Any, dataclasses.field(default=row.default, default_factory=row.default_factory))
        for row in rows
    ]
    return dataclasses.make_dataclass("Model", again, frozen=True, repr=False, eq=False).__init__  # type: ignore[misc]


def _getter(names: Iterable[str]) -> Callable[[Any], Any]:
    found = tuple(names)
    return attrgetter(*found) if found else lambda made: ()


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change {name!r} of a {type(self).__name__}")
