"""The leader of a gang: the worker whose claim stands. It gathers the others, says go, and watches over them.

It alone writes into the run's log. When a rank fails, or its worker's heartbeat stands still, all are
stopped: what ended first is what ended the attempt. A worker that was told to go is a preemption of all.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hostler import env
from hostler.attempt.saver import NotWhole
from hostler.attempt.status import AttemptStatus
from hostler.errors import StoreError
from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.run import gang as gangs
from hostler.records.run import heartbeats
from hostler.records.run.attempt import Attempt
from hostler.records.run.gang import Gang, GangMember, GangNode, GangStart, GangView
from hostler.records.run.heartbeats import Watch
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Job, Resources
from hostler.spec.states import stop_reason
from hostler.worker.gang import meeting, missing, ranks
from hostler.worker.gang.board import NoticeBoard
from hostler.worker.gang.checkpoint import Collector
from hostler.worker.gang.first_failure import cause, is_echo, with_port
from hostler.worker.gang.meeting import Ports
from hostler.worker.gang.rendezvous import GIVE_UP, GO, GatheringView, Rendezvous, decide, patience
from hostler.worker.machine import Machine
from hostler.worker.run.conclude import GOING, RANK_LOST
from hostler.worker.run.failure import Verdict
from hostler.worker.run.kinds import DONE, GANG, NOT_FINISHED, UNREACHED
from hostler.worker.run.kinds import RANK_LOST as LOST


class NotGathered(Exception):
    """The gang did not form. The verdict says what is wrong; None: nothing is, `why` says what is first."""

    def __init__(self, verdict: Verdict | None, why: str = "") -> None:
        super().__init__(verdict.message if verdict else why)
        self.verdict, self.why = verdict, why


class Leader:
    def __init__(
        self,
        machine: Machine,
        job: Job,
        attempt: Attempt,
        status: AttemptStatus,
        say: Callable[[str], None],
        *,
        only: Iterable[str] = (),
        fits: Callable[[Resources], bool] = lambda ask: True,
    ) -> None:
        """`fits`: would this worker, when empty, do for what a run asks for?"""
        self._m, self._job, self._attempt, self._status, self._say = machine, job, attempt, status, say
        self._only, self._fits = tuple(only), fits
        self._gang = Gang(machine.store, attempt.key.run, attempt.number)
        self._watch = Watch(machine.timing.lease)
        self._ports: Ports | None = None
        self._board: NoticeBoard | None = None
        self._looked, self._lock = float("-inf"), threading.Lock()
        self._seen, self._stale = GangView(), frozenset[str]()
        self._left = False  # the others were told that this worker has to go
        self._bill = Bill()
        self._over = set[int]()  # nodes that were seen to bring no more parts of checkpoints
        self._broken_at: float | None = None  # when it was first waited for one after all was lost
        self.go: GangStart | None = None
        self.broken: Verdict | None = None

    def form(self, restored: str | None) -> GangStart:
        """Wait until all have come and are ready, and say go. `restored`: what all go on from."""
        asked = self._job.resources
        allowed, m = env.ports(), self._m
        ports = self._ports = Ports(ranks.ports_of_node(self._job.distributed, asked.procs_per_node), allowed)
        if asked.nodes == 1:
            self.go = GangStart((GangNode(0, m.session, env.host(), meeting.LOOPBACK, ports.numbers),), 0)
            return self.go
        secret = secrets.token_hex(16)
        self._board = NoticeBoard(meeting.listening(allowed), secret)
        facts: Record = {
            "session": m.session,
            "host": env.host(),
            "machine": meeting.machine(),
            "restored": restored,
        }
        facts |= {"addresses": meeting.addresses(), "port": ports.numbers[0], "nodes": asked.nodes}
        self._status.deliver(lambda: self._gang.lead(facts))
        gang_view = self._gather()
        self.go = GangStart(self._nodes(gang_view, facts), self._board.port, secret)
        made = self.go
        self._status.guard()
        ports.hush()  # the others may be at their places before our process is
        self._status.deliver(lambda: self._gang.go(made))
        hosts = ", ".join(f"{rank} {node.host}" for rank, node in enumerate(made.nodes))
        self._say(f"{len(made.nodes)} nodes train together: {hosts}")
        return made

    def spawns(self) -> None:
        """The processes start now: the ports are theirs."""
        if self._ports:
            self._ports.release()

    def collector(self) -> Collector | None:
        """Collector of the others' parts of a checkpoint; None where this node is alone."""
        if self.go is None or len(self.go.nodes) < 2:
            return None
        key, procs = self._attempt.key, self._job.resources.procs_per_node
        check = self._still_whole
        return Collector(self._m.store, key.run, self._attempt.number, len(self.go.nodes), procs, check)

    def _still_whole(self, missing: set[int]) -> None:
        """Raise if parts can never come: a node brings its own before it ends, or a lease after a loss."""
        self._status.check()
        if never := missing & self._over:  # they were before we looked
            raise NotWhole(f"nodes {sorted(never)} ended without saving their parts")
        self.check()
        self._over = {*self._ends(), *self._lost()}
        if self.broken:
            self._broken_at = self._broken_at or self._m.clock()
            if self._m.clock() - self._broken_at > self._m.timing.lease:
                raise NotWhole(f"nodes {sorted(missing)} have not saved their parts: {self.broken.message}")

    @property
    def cost(self) -> float:
        """Cost of the others' machines in this attempt, where prices are known."""
        return self._bill.total

    def close(self) -> None:
        if self._ports:
            self._ports.release()
        if self._board:
            self._board.close()

    def check(self) -> None:
        """Once a beat: is everybody still there? What is wrong stops the run."""
        if self.go is None or len(self.go.nodes) < 2 or self.broken:
            return
        self._say_if_we_go()
        if self._m.clock() - self._looked < self._m.timing.beat:
            return
        try:
            self._look([node.session for node in self._others_of_go()])
        except StoreError:
            return  # the pulse knows how long that may last
        self._judge_members()

    def judge(self, verdict: Verdict) -> Verdict:
        """Our process has ended so: what does it mean, in view of the others? Waits for them, a while."""
        if self.go is None or len(self.go.nodes) < 2:
            return with_port(verdict)
        self._say_if_we_go()
        self._wait_for_others(verdict)
        members = [member for member in self._members() if member.leaves]
        if members and not self.broken and verdict.kind not in (DONE, NOT_FINISHED):
            self._status.ask(str((members[0].leaves or {}).get("reason")))
            return Verdict(NOT_FINISHED, f"stopped: {members[0].host} had to leave")
        stopped = self.broken and verdict.kind == NOT_FINISHED  # by us
        found = cause(Verdict(DONE, "") if stopped else verdict, self._ends(), self._lost())
        if self.broken:
            self._status.stop = None
            found = self.broken if found.kind == DONE else found
        return with_port(found)

    def _say_if_we_go(self) -> None:
        """Tell the others to stop with us: time does not allow waiting for them to find out."""
        if self._left or self._status.stop not in GOING:
            return
        try:
            self._gang.note(gangs.LEADER, gangs.LEAVES, {"reason": self._status.stop})
            self._left = True
        except StoreError:
            return  # at the next look

    def _wait_for_others(self, verdict: Verdict) -> None:
        """Until they have ended, too, or what ended the attempt is known."""
        timing, begun = self._m.timing, self._m.clock()
        going = self._status.stop in GOING
        longest = 0.0 if self.broken else patience(verdict.kind, timing, going=going)
        while not self._status.fenced:
            self._status.deliver(lambda: self._look([node.session for node in self._others_of_go()]))
            ends, lost = self._ends(), self._lost()
            failed = verdict.kind not in (DONE, NOT_FINISHED)
            known = failed and not is_echo(cause(verdict, ends, lost))
            over = len(ends) + len(lost) == len(self._others_of_go())
            if known or over or self._m.clock() - begun >= longest:
                return
            time.sleep(timing.poll)

    def _others_of_go(self) -> Sequence[GangNode]:
        return self.go.nodes[1:] if self.go else ()

    def _gather(self) -> GangView:
        timing, begun = self._m.timing, self._m.clock()
        moved, known = begun, 0
        queues: dict[str, Queue] = {}
        beats = self._status.deliver(lambda: heartbeats.etags(self._m.store))  # who lives has others later
        rendezvous = Rendezvous(self._m.store, self._m.session)
        pause = max(timing.poll, timing.beat / 4)
        while True:
            self._status.check()
            if self._status.stop:
                raise NotGathered(Verdict(NOT_FINISHED, f"stopped: {stop_reason(self._status.stop)}"))
            gang_view = self._status.deliver(self._look_while_forming)
            members, now = gang_view.here, self._m.clock()
            moved, known = (now, len(members)) if len(members) != known else (moved, known)
            ready = [member for member in members if member.ready]
            asked = self._job.resources
            view = GatheringView(
                asked.nodes, asked.fewest, 1 + len(members), 1 + len(ready), now - begun, now - moved
            )
            what = decide(view, timing.gather, timing.lease)
            if what == GO:
                return gang_view
            if what == GIVE_UP:
                raise self._not_gathered(gang_view, view.since, beats)
            for older in self._status.deliver(lambda: rendezvous.everywhere(self._only, queues)):
                if older.age < self._age and self._fits(older.job.resources):
                    raise NotGathered(None, "an older run gathers its workers first")
            time.sleep(pause)

    @property
    def _age(self) -> tuple[float, str]:
        return float((self._attempt.state.claim or {}).get("at", 0.0)), self._attempt.key.run

    def _look_while_forming(self) -> GangView:
        """Write that a member whose heartbeat stands still is gone: its place is free for another."""
        gang_view = self._gang.look()
        self._look([member.session for member in gang_view.here])
        for member in gang_view.here:
            if member.session in self._stale:
                self._gang.note(
                    member.slot, gangs.EXIT, {"kind": LOST, "message": "its heartbeat stood still"}
                )
        return self._gang.look() if self._stale else gang_view

    def _look(self, sessions: Sequence[str]) -> None:
        with self._lock:  # who waits for parts of a checkpoint looks, too
            stamp = self._looked = self._m.clock()
            self._stale = frozenset(self._watch.observe(stamp, heartbeats.etags(self._m.store), sessions))
            self._seen = self._gang.look()
            self._bill.see(self._seen, self._stale, stamp)

    def _nodes(self, seen: GangView, facts: Record) -> tuple[GangNode, ...]:
        """The leader first, then the others by their numbers; all on one machine meet on loopback."""
        others = [member for member in seen.here if member.ready]
        addresses, port = list[str](facts["addresses"]), int(facts["port"])
        here = all(member.joined.get("machine") == facts["machine"] for member in others)
        chosen = (
            meeting.LOOPBACK
            if here
            else next(
                (a for a in addresses if all(a in (m.ready or {}).get("reaches", ()) for m in others)), ""
            )
        )
        if not chosen:
            raise NotGathered(
                Verdict(UNREACHED, missing.unreached(seen, addresses, port), signature="gang:reach")
            )
        assert self._ports is not None
        first = GangNode(gangs.LEADER, self._m.session, env.host(), chosen, self._ports.numbers)
        return (first, *(_node(member, chosen, here=here) for member in others))

    def _not_gathered(self, seen: GangView, waited: float, known: Mapping[str, str]) -> NotGathered:
        """Workers that are only busy come when their runs have ended: that is not a failure."""
        sessions = heartbeats.etags(self._m.store)
        beats = {
            session: beat
            for session in sessions
            if (beat := heartbeats.read(self._m.store, session)) is not None
        }
        sweep, asked, leader = self._attempt.key.sweep, self._job.resources, self._m.session
        alive = {one: beats[one] for one in beats if sessions[one] != known.get(one)}
        if 1 + len(seen.here) + missing.busy(seen, alive, leader, sweep) >= asked.fewest:
            text = missing.who(seen, beats, leader, sweep, asked.nodes)
            self._say(f"its workers are still busy after {waited:.0f} s: {text}")
            return NotGathered(None, "its workers are busy")
        message = missing.why_not(seen, beats, leader, sweep, asked.nodes, waited)
        return NotGathered(Verdict(GANG, message, signature="gang"))

    def _members(self) -> list[GangMember]:
        """The others of the gang that went, by rank."""
        slots = [node.slot for node in self._others_of_go()]
        return [self._seen.members[slot] for slot in slots if slot in self._seen.members]

    def _ends(self) -> dict[int, Mapping[str, object]]:
        """node → how its processes ended, of those that have."""
        return {n: member.exit for n, member in enumerate(self._members(), start=1) if member.exit}

    def _lost(self) -> dict[int, str]:
        """node → host, of those whose heartbeat stands still before they have said how they ended."""
        members = enumerate(self._members(), start=1)
        return {n: member.host for n, member in members if not member.exit and member.session in self._stale}

    def _judge_members(self) -> None:
        for member in self._members():
            if member.leaves:
                self._status.ask(str(member.leaves.get("reason")))
        verdict = cause(Verdict(DONE, ""), self._ends(), self._lost())
        if verdict.kind not in (DONE, NOT_FINISHED) and self._status.stop is None:
            self.broken = verdict
            self._say(f"{verdict.message}: all nodes are stopped")
            self._status.ask(RANK_LOST)


def _node(member: GangMember, leader: str, *, here: bool) -> GangNode:
    ready = member.ready or {}
    address = meeting.LOOPBACK if here else str(ready["reaches"][leader])
    return GangNode(member.slot, member.session, member.host, address, tuple(ready["ports"]))


@dataclass(frozen=True)
class WorkerTime:
    """Time of a worker in the gang, in the leader's seconds."""

    first: float
    last: float
    rate: float = 0.0  # an hour

    @property
    def cost(self) -> float:
        return self.rate * (self.last - self.first) / 3600


class Bill:
    """Cost of the other workers of a gang, each from when its leader first saw it until it had gone, by the
    leader's clock alone. The cost of the leader's own machine is not in it."""

    def __init__(self) -> None:
        self._spans: dict[int, WorkerTime] = {}

    def see(self, seen: GangView, stale: Collection[str], now: float) -> None:
        """A look at the gang; `stale`: sessions whose heartbeat stands still."""
        for member in seen.others:
            known = self._spans.get(member.slot) or WorkerTime(now, now)
            here = member.here and member.session not in stale
            self._spans[member.slot] = replace(
                known, last=now if here else known.last, rate=known.rate or _rate(member)
            )

    @property
    def total(self) -> float:
        return sum(span.cost for span in list(self._spans.values()))  # others ask while it is seen


def _rate(member: GangMember) -> float:
    """As it said when it was ready; who never was has done nothing for the run."""
    return float((member.ready or {}).get("rate") or 0.0)
