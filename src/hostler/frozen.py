"""`dataclass(frozen=True)`, made in a tenth of the time: a script that starts a run waits for each of them.

The standard library writes and compiles the methods of each class; here they are the same few functions for
all. Its `fields`, `replace` and `asdict` work with these. One object of them takes longer to make: what there
are thousands of stays with the standard library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

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
    values = attrgetter(*(row.name for row in rows if row.compare))
    shown = [row.name for row in rows if row.repr]

    def same(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def show(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    made.__init__, made.__eq__, made.__repr__ = _initializer(made, rows), same, show
    made.__hash__ = lambda self: hash(values(self))
    made.__setattr__ = made.__delattr__ = _refuse
    return cls


def _initializer(cls: type, rows: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    names = tuple(row.name for row in rows)
    plain = {row.name: row.default for row in rows if row.default is not dataclasses.MISSING}
    factories = {
        row.name: row.default_factory for row in rows if row.default_factory is not dataclasses.MISSING
    }

    def initialize(self: Any, *args: Any, **given: Any) -> None:
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


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change {name!r} of a {type(self).__name__}")
