"""Launches of fleets, and the times their workers were there.

`spec.json` of a generation is created once: who creates it may start machines under that number. After
`gone.json` nothing of it may begin: a worker notes itself first and looks for it then, so that of the two
one always sees the other. A worker's note has one writer, and says seconds of its own clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, fields

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import (
    MOMENT,
    NUMBER,
    ROWS,
    TABLE,
    TEXT,
    WHOLE,
    checked,
    decode,
    encode,
    taken_apart,
)
from hostler.spec.names import is_part, slug
from hostler.store import NotFound, Store


@dataclass(frozen=True)
class Generation:
    """A launch of a fleet. Times are the store's."""

    fleet: str
    number: int
    launch: str = ""  # a token of its own
    workers: int = 0  # at full size
    price: float | None = None  # of one worker, an hour, all included
    began: float = 0.0
    deadline: float | None = None
    sweeps: tuple[str, ...] = ()
    reserved: Mapping[str, float] = field(default_factory=dict)  # sweep → money
    counted: bool = False  # its workers are so many processes, each of which notes its own end
    billed: bool = False  # machines cost before a worker begins and after it has left
    by_hand: bool = False  # one machine for a person: it takes no runs
    gpu_memory: int = 0  # bytes of the largest GPU that it may get, where machines are chosen by price

    @property
    def name(self) -> str:
        return f"{self.fleet}/{self.number}"

    @property
    def hourly(self) -> float:
        return (self.price or 0.0) * self.workers


@dataclass(frozen=True)
class Stay:
    """How long one worker process has been there."""

    session: str
    seconds: float
    over: bool = False
    final: bool = False  # nobody starts another in its place
    used: float = 0.0  # money, by the runs it carried out
    modified: float = 0.0
    machine: str = ""  # that it is on, where that costs before it begins
    age: float = 0.0  # of that machine, in seconds
    price: float | None = None  # of this worker, an hour; None: as its launch says


def new_launch() -> str:
    return os.urandom(8).hex()


def named(text: str) -> tuple[str, int] | None:
    """(fleet, number) of `fleet/number`."""
    fleet, _, number = text.rpartition("/")
    found = layout.numbers(number)
    return (fleet, found[0]) if fleet and found else None


def begin(store: Store, one: Generation) -> bool:
    """Take its number; False if another has it."""
    return store.put(layout.generation_spec(one.fleet, one.number), encode(asdict(one)), if_absent=True)


def void(store: Store, fleet: str, number: int) -> None:
    """Nobody will start anything under this number any more, unless somebody has it already."""
    begin(store, Generation(fleet, number))


def read(store: Store, fleet: str, number: int) -> Generation | None:
    key = layout.generation_spec(fleet, number)
    try:
        record = decode(store.get(key).data, key)
    except NotFound:
        return None
    checked(record, _FIELDS, key)
    known = {f.name: record[f.name] for f in fields(Generation) if record.get(f.name) is not None}
    with taken_apart(key):
        reserved = {str(sweep): float(money) for sweep, money in dict(known.get("reserved", {})).items()}
        known |= {"sweeps": tuple(map(str, known.get("sweeps", ()))), "reserved": reserved}
        return Generation(**{**known, "fleet": fleet, "number": number})


_FIELDS = {
    "launch": TEXT,
    "workers": WHOLE,
    "price": NUMBER,
    "began": MOMENT,
    "deadline": MOMENT,
    "sweeps": ROWS,
    "reserved": TABLE,
    "seconds": NUMBER,
    "used": NUMBER,
    "age": NUMBER,
    "machine": TEXT,
    "gpu_memory": WHOLE,
}


def next_number(store: Store, fleet: str) -> int:
    return 1 + max(_numbers(store, slug(fleet)), default=0)


def of_fleet(store: Store, fleet: str, say: Callable[[str], None] | None = None) -> list[Generation]:
    """`say`: as of `everywhere`."""
    generations = []
    for number in _numbers(store, slug(fleet)):
        try:
            generations.append(read(store, slug(fleet), number))
        except (DamagedError, NewerFormatError) as error:
            if say is None:
                raise
            say(str(error))
    return [generation for generation in generations if generation is not None]


def everywhere(store: Store, say: Callable[[str], None] | None = None) -> list[Generation]:
    """Launches of all fleets, by name and number. `say` gets what cannot be read, and that launch is left
    out; without it that is an error."""
    rows = [entry.key for entry in store.list(layout.FLEETS, deep=False) if entry.key.endswith("/")]
    names = [name for key in rows if is_part(name := key.removeprefix(layout.FLEETS).rstrip("/"))]
    return [generation for name in names for generation in of_fleet(store, name, say)]


def close(store: Store, fleet: str, number: int, watched: float | None = None) -> None:
    """Nothing of it is left; nothing of it may begin. `watched`: for how many seconds its machines were there
    in all, where somebody saw every one of them."""
    facts = {} if watched is None else {"seconds": round(watched, 3)}
    store.put(layout.gone(fleet, number), encode(facts), if_absent=True)
    store.delete(layout.secrets(fleet, number))


def watched(store: Store, fleet: str, number: int) -> float | None:
    """The seconds of its machines, if whoever closed it knew."""
    key = layout.gone(fleet, number)
    try:
        seconds = checked(decode(store.get(key).data, key), _FIELDS, key).get("seconds")
    except NotFound:
        return None
    return None if seconds is None else float(seconds)


def gone_at(store: Store, fleet: str, number: int) -> float | None:
    """When it was found gone, by the store's clock."""
    return next((entry.modified for entry in store.list(layout.gone(fleet, number))), None)


def note(store: Store, fleet: str, number: int, one: Stay) -> None:
    facts = {
        "seconds": round(one.seconds, 3),
        "over": one.over,
        "final": one.final,
        "used": round(one.used, 6),
        **({"machine": one.machine, "age": round(one.age, 3)} if one.machine else {}),
        **({"price": one.price} if one.price is not None else {}),
    }
    store.put(layout.fleet_worker(fleet, number, one.session), encode(facts))


def stays(store: Store, fleet: str, number: int) -> Sequence[Stay]:
    found = []
    for entry in store.list(layout.fleet_workers(fleet, number)):
        session = entry.key.rsplit("/", 1)[1].removesuffix(".json")
        record = checked(decode(store.get(entry.key).data, entry.key), _FIELDS, entry.key)
        with taken_apart(entry.key):
            stay = Stay(
                session,
                float(record["seconds"]),
                record["over"],
                record["final"],
                float(record.get("used", 0.0)),
                entry.modified,
                str(record.get("machine", "")),
                float(record.get("age", 0.0)),
                None if record.get("price") is None else float(record["price"]),
            )
            found.append(stay)
    return found


def _numbers(store: Store, fleet: str) -> list[int]:
    rows = (entry.key for entry in store.list(layout.fleet(fleet), deep=False) if entry.key.endswith("/"))
    names = (key.rstrip("/").rsplit("/", 1)[1] for key in rows)
    return sorted(found[0] for name in names if (found := layout.numbers(name)))
