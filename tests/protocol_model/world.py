"""What a state of the model holds: the store's objects, the actors' memory, and the truth.

Everything is immutable and hashable, and every bound of a world is written down in `World`. The truth
(`Truth`) is what the model knows and no actor can read; only the properties look at it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from protocol_model.rules import Rules

Place = tuple[int, int]  # (attempt, step) of a checkpoint or of a metric point
Session = tuple[int, int]  # (worker, how often it was started)
Request = tuple[str | int, ...]  # a verb and its arguments
NOWHERE: Place = (0, 0)


@dataclass(frozen=True)
class World:
    """The bounds of one small world, and what its environment may do."""

    workers: int = 2
    runs: int = 1
    claims: int = 2  # of one run
    steps: int = 2  # of training to the end of a run
    keep: int = 1
    may_skip_saves: bool = False  # a step that is not the last may go without a checkpoint
    crashes: int = 0
    freezes: int = 0
    faults: int = 0
    fault_kinds: tuple[str, ...] = ("lost", "exists", "conflict", "delayed")
    preemptions: int = 0
    restarts: bool = False  # the engine brings a crashed worker back
    tenants: bool = False  # each worker has the place of the one before it, and calls that one dead: wrongly
    person: tuple[str, ...] = ()  # verbs, in order, each at any moment

    def __str__(self) -> str:
        own = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return " ".join(f"{name}={','.join(v) if isinstance(v, tuple) else v}" for name, v in own) or "plain"


class Case(NamedTuple):
    world: World
    rules: Rules


class Entry(NamedTuple):
    """One entry of a run's log. A claim's attempt number is its place in the log."""

    kind: str  # claim, release, stop, end, reopen
    token: tuple[int, int]  # unique to the write: (author, serial)
    attempt: int = 0  # of a release or end; 0 = a person's
    session: Session = (0, 0)  # of a claim
    over: int = 0  # of a claim: the attempt it takes over from; 0 = the run was free
    result: str = ""  # of an end
    source: Place = NOWHERE  # of an end: the finished checkpoint


Log = tuple[Entry | None, ...]


class Saved(NamedTuple):
    """A checkpoint's folder as it is in the store."""

    attempt: int
    step: int
    files: bool
    commit: str  # "", "COMMIT" or "finished"

    @property
    def place(self) -> Place:
        return self.attempt, self.step


class First(NamedTuple):
    """The first metric fragment of an attempt."""

    attempt: int
    source: Place


class Truth(NamedTuple):
    anchor: Place = NOWHERE  # the last COMMIT written by an attempt that held the run
    finished: Place = NOWHERE  # the finished COMMIT written by an attempt that held the run
    sources: frozenset[First] = frozenset()  # where each attempt really went on from


class Run(NamedTuple):
    log: Log = ()
    saved: frozenset[Saved] = frozenset()
    points: frozenset[Place] = frozenset()
    firsts: frozenset[First] = frozenset()
    copy: str = ""  # ends/<run>: read by nobody who decides, as long as the rules are kept
    truth: Truth = Truth()


class Actor(NamedTuple):
    """A worker process, or a person at a terminal: what it remembers between two requests."""

    up: str = "up"  # up, frozen, crashed, left
    start: int = 1
    late: bool = False
    overtaken: bool = False  # truth: its run was taken over while it was frozen
    run: int = 0
    head: int = 0  # the log's length as this actor knows it
    pending: Entry | None = None  # the entry it is creating as head+1
    unsure: bool = False  # it was sent, and the answer did not tell what happened
    serial: int = 0
    attempt: int = 0  # its claim, 0 = none
    claim: tuple[int, int] = (0, 0)  # the claim's token
    source: Place = NOWHERE
    step: int = 0
    stopping: bool = False
    todo: tuple[Request, ...] = ()
    person: bool = False
    wants: tuple[str, ...] = ()  # a person's verbs

    def idle(self) -> Actor:
        """The same process (or person) with nothing in hand."""
        return Actor(start=self.start, serial=self.serial, person=self.person, wants=self.wants)


class Budget(NamedTuple):
    crashes: int
    freezes: int
    faults: int
    preemptions: int


class State(NamedTuple):
    runs: tuple[Run, ...]
    actors: tuple[Actor, ...]  # the workers, then the person
    left: Budget  # what the environment may still do
    beats: frozenset[Session] = frozenset()  # sessions whose heartbeat was ever written
    flying: frozenset[tuple[int, int, Entry]] = frozenset()  # delayed puts: run, k, entry
    broken: str = ""

    def actor(self, i: int, new: Actor) -> State:
        return self._replace(actors=(*self.actors[:i], new, *self.actors[i + 1 :]))

    def run(self, r: int, new: Run) -> State:
        return self._replace(runs=(*self.runs[:r], new, *self.runs[r + 1 :]))

    def breaks(self, what: str) -> State:
        return self if self.broken else self._replace(broken=what)


Step = tuple[str, State]


def first_state(world: World) -> State:
    person = (Actor(person=True, wants=world.person),) if world.person else ()
    return State(
        runs=(Run(),) * world.runs,
        actors=(Actor(),) * world.workers + person,
        left=Budget(world.crashes, world.freezes, world.faults, world.preemptions),
    )


def name_of(state: State, i: int) -> str:
    return "the person" if state.actors[i].person else f"worker {'ABCDEF'[i]}"
