"""A gang: the workers that carry out an attempt together, from joining to the go.

    gang/<n>/0000.json         the leader, whose claim stands: where it can be reached, what it goes on from
    gang/<n>/0001.json         a worker that joined; slots are given out once, in the order of coming
    gang/<n>/0001-ready.json   it has the code, the data and the checkpoint
    gang/<n>/go.json           the leader: these are the nodes, in this order, and they meet here
    gang/<n>/0001-leaves.json  it was told to go; of the leader: all stop
    gang/<n>/0001-exit.json    its processes have ended so; of one that is gone, the leader says it

All are created once. Ranks are numbers, given by the go: a slot whose worker died leaves no hole.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hostler.errors import Fenced
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import NUMBER, PART, TEXT, Record, checked, decode, encode, taken_apart
from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.store import NotFound, Store

LEADER = 0
JOINED, READY, LEAVES, EXIT = "", "ready", "leaves", "exit"


@dataclass(frozen=True)
class GangMember:
    """A worker of the gang, by its notes so far."""

    slot: int
    joined: Record = field(default_factory=dict)
    ready: Record | None = None
    leaves: Record | None = None
    exit: Record | None = None

    @property
    def session(self) -> str:
        return str(self.joined.get("session", ""))

    @property
    def host(self) -> str:
        return str(self.joined.get("host", ""))

    @property
    def here(self) -> bool:
        """It has neither left nor ended."""
        return self.leaves is None and self.exit is None


@dataclass(frozen=True)
class GangNode:
    """A node of a gang that goes: its rank is its place in the go's list."""

    slot: int
    session: str
    host: str
    address: str
    ports: tuple[int, ...]


@dataclass(frozen=True)
class GangStart:
    nodes: tuple[GangNode, ...]
    board: int  # the port of the leader's board
    secret: str = field(repr=False, default="")  # what a rank shows at the board

    def rank_of(self, slot: int) -> int | None:
        """The node's number; None: it went without."""
        return next((rank for rank, node in enumerate(self.nodes) if node.slot == slot), None)


@dataclass(frozen=True)
class GangView:
    """A gang as one look found it."""

    members: Mapping[int, GangMember] = field(default_factory=dict)
    go: GangStart | None = None

    @property
    def leader(self) -> GangMember | None:
        return self.members.get(LEADER)

    @property
    def others(self) -> list[GangMember]:
        """Members that joined, in the order of their numbers."""
        return [self.members[slot] for slot in sorted(self.members) if slot != LEADER]

    @property
    def here(self) -> list[GangMember]:
        return [member for member in self.others if member.here]


class Gang:
    """An attempt's gang in the store. What was read once is never read again: nothing in it changes."""

    def __init__(self, store: Store, run: str, attempt: int) -> None:
        self._store, self._run, self._attempt = store, run, attempt
        self._known: dict[str, Record] = {}

    def look(self) -> GangView:
        """List the gang's objects, and read the new ones."""
        for entry in self._store.list(layout.gang(self._run, self._attempt)):
            if entry.key not in self._known:
                try:
                    record = decode(self._store.get(entry.key).data, entry.key)
                    self._known[entry.key] = checked(record, _FIELDS, entry.key)
                except NotFound:  # the run is being deleted
                    continue
        return _seen(self._known)

    def lead(self, facts: Mapping[str, Any]) -> None:
        self._create(layout.gang_member(self._run, self._attempt, LEADER), facts)

    def join(self, facts: Mapping[str, Any], nodes: int) -> int | None:
        """A slot of one's own; None if it is complete, or gone."""
        while True:
            gang_view = self.look()
            if gang_view.go or len(gang_view.here) >= nodes - 1:
                return None
            slot = max((member.slot for member in gang_view.others), default=LEADER) + 1
            if self._create(layout.gang_member(self._run, self._attempt, slot), facts):
                return slot

    def note(self, slot: int, what: str, facts: Mapping[str, Any]) -> None:
        self._create(layout.gang_member(self._run, self._attempt, slot, what), facts)

    def go(self, go: GangStart) -> None:
        nodes = [{**vars(node), "ports": list(node.ports)} for node in go.nodes]
        record = {"nodes": nodes, "board": go.board, "secret": go.secret}
        self._create(layout.gang_go(self._run, self._attempt), record)

    def _create(self, key: str, facts: Mapping[str, Any]) -> bool:
        return self._store.put(key, encode(dict(facts)), if_absent=True)


class Followed:
    """An attempt as one who follows its leader knows it: it writes nothing into the run's log. Safe to use
    from several threads."""

    def __init__(self, store: Store, key: RunKey, number: int) -> None:
        self._log, self._lock = RunLog(store, key), threading.Lock()
        self.key, self.number = key, number

    @property
    def state(self) -> RunState:
        return fold(self._log.entries)

    def look(self) -> str | None:
        """The reason of a stop request, or None. Fenced once the attempt is over, however it ended."""
        with self._lock:
            self._log.read_on()
        if any(map(log.closes, self._log.entries[self.number :])):
            raise Fenced(f"{self.key.run}: attempt {self.number} is over")
        return self.state.stop

    def guard(self) -> None:
        self.look()


def _seen(known: Mapping[str, Record]) -> GangView:
    said = {layout.split_gang(key): record for key, record in known.items()}
    members = {slot: GangMember(slot, record) for (slot, what), record in said.items() if what == JOINED}
    for slot, member in members.items():
        told = {what: said.get((slot, what)) for what in (READY, LEAVES, EXIT)}
        members[slot] = GangMember(slot, member.joined, told[READY], told[LEAVES], told[EXIT])
    at = next((key for key in known if layout.split_gang(key) == (-1, "go")), None)
    return GangView(members, _go(known[at], at) if at else None)


_FIELDS = {"session": PART, "host": TEXT, "at": NUMBER}


def _go(record: Record, key: str) -> GangStart:
    with taken_apart(key):
        nodes = tuple(
            GangNode(n["slot"], n["session"], n["host"], n["address"], tuple(n["ports"]))
            for n in record["nodes"]
        )
        return GangStart(nodes, int(record["board"]), str(record["secret"]))
