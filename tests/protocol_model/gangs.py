"""Gangs: workers that gather for runs which take several of them, with crashes and time-outs in between.

A look and what follows from it are two steps, so that others come in between: two leaders may claim at once.
A run's log is cut down to its newest claim, whose number fences the ones before it; how entries are decided
is the other machine's matter. Ranks train in two moves: each writes its part, then it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from protocol_model.rules import Rules

TRIES = 2  # time-outs after which a run has failed
NOBODY = -1


class Worker(NamedTuple):
    mode: str = "idle"  # idle, joins, claims, leads, waits, trains, done, dead
    run: int = NOBODY
    attempt: int = 0
    rank: int = NOBODY


class Run(NamedTuple):
    nodes: int
    state: str = "queued"  # queued, claimed, ended
    attempt: int = 0
    age: int = 0  # of its claim: lower is older
    leader: int = NOBODY
    members: tuple[int, ...] = ()  # in the order of coming
    go: tuple[int, ...] = ()  # leader first; empty: it has not gone
    parts: frozenset[int] = frozenset()  # ranks whose part of the checkpoint is there
    committed: bool = False
    tries: int = 0


class State(NamedTuple):
    workers: tuple[Worker, ...]
    runs: tuple[Run, ...]
    claims: int = 0
    crashes: int = 0
    broken: str = ""

    def worker(self, i: int, worker: Worker) -> State:
        return self._replace(workers=(*self.workers[:i], worker, *self.workers[i + 1 :]))

    def run(self, r: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:r], run, *self.runs[r + 1 :]))


@dataclass(frozen=True)
class GangWorld:
    """So many workers, and runs that take so many each."""

    workers: int = 2
    nodes: tuple[int, ...] = (2,)
    crashes: int = 0
    timeouts: bool = False  # the time for gathering may pass
    claims: int = 4
    restarts: bool = True  # a dead worker is started again

    def __str__(self) -> str:
        return f"gangs-{self.workers}-{self.nodes}-{self.crashes}-{self.timeouts}".replace(" ", "")


Step = tuple[str, State]


@dataclass(frozen=True)
class Gathering:
    """The machine that the search walks through."""

    world: GangWorld
    rules: Rules = field(default_factory=Rules)

    def start(self) -> State:
        runs = tuple(Run(nodes) for nodes in self.world.nodes)
        return State((Worker(),) * self.world.workers, runs, 0, self.world.crashes)

    def steps(self, now: State) -> Iterator[Step]:
        for i, me in enumerate(now.workers):
            acts = {"idle": self._look, "joins": self._join, "claims": self._claim, "leads": self._lead}
            acts |= {"waits": self._wait, "trains": self._train, "done": self._train}
            if me.mode in acts:
                yield from acts[me.mode](now, i)
            if now.crashes and me.mode not in ("dead", "idle"):
                yield f"worker {i} dies", now._replace(crashes=now.crashes - 1).worker(i, Worker("dead"))
            if me.mode == "dead" and self.world.restarts:
                yield f"worker {i} is started again", now.worker(i, Worker())

    def broken(self, now: State) -> str:
        if now.broken:
            return now.broken
        for r, run in enumerate(now.runs):
            if run.go and len(run.go) != run.nodes:
                return f"P10: {len(run.go)} of {run.nodes} ranks of run {r} train"
            at = [
                w.rank for w in now.workers if w.mode == "trains" and (w.run, w.attempt) == (r, run.attempt)
            ]
            if len(set(at)) < len(at):
                return f"P10: two train as one rank of run {r}"
            if run.state == "ended" and run.tries < TRIES and at:
                return f"P10: run {r} has ended, and ranks {at} still train"
            if run.committed and len(run.parts) < run.nodes:
                return f"P3: COMMIT of run {r} stands without the parts of all"
        return ""

    def ended(self, now: State) -> bool:
        return all(run.state == "ended" for run in now.runs)

    def out_of_bounds(self, now: State) -> bool:
        return now.claims >= self.world.claims and not self.ended(now)

    def _look(self, now: State, i: int) -> Iterator[Step]:
        """Join the oldest that lacks workers; else claim what is queued, or held by one who is dead."""
        forming = sorted((run.age, r) for r, run in enumerate(now.runs) if self._lacks(now, r))
        for _, r in forming[:1]:
            yield f"worker {i} finds run {r} forming", now.worker(i, Worker("joins", r, now.runs[r].attempt))
        if forming or now.claims >= self.world.claims:
            return
        for r, run in enumerate(now.runs):
            lost = run.state == "claimed" and not self._led(now, r)
            if run.state == "queued" or lost:
                yield f"worker {i} finds run {r} free", now.worker(i, Worker("claims", r, run.attempt))

    def _lacks(self, now: State, r: int) -> bool:
        run = now.runs[r]
        forming = run.state == "claimed" and not run.go and self._led(now, r)
        return forming and len(run.members) < run.nodes - 1

    def _led(self, now: State, r: int) -> bool:
        leader = now.workers[now.runs[r].leader]
        return leader.mode in ("leads", "trains", "done") and leader[1:3] == (r, now.runs[r].attempt)

    def _join(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        late = run.attempt != me.attempt or run.state != "claimed" or len(run.members) >= run.nodes - 1
        if late or (run.go and self.rules.go_names_members):
            yield f"worker {i} comes too late for run {me.run}", now.worker(i, Worker())
            return
        joined = now.run(me.run, run._replace(members=(*run.members, i)))
        yield f"worker {i} joins run {me.run}", joined.worker(i, me._replace(mode="waits"))

    def _claim(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        if run.attempt != me.attempt or run.state == "ended" or now.claims >= self.world.claims:
            yield f"worker {i} finds run {me.run} taken", now.worker(i, Worker())
            return
        number = run.attempt + 1
        taken = Run(run.nodes, "claimed", number, now.claims, i, tries=run.tries)
        after = now._replace(claims=now.claims + 1).run(me.run, taken)
        yield f"worker {i} claims run {me.run}", after.worker(i, Worker("leads", me.run, number, 0))

    def _lead(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        if run.attempt != me.attempt:
            yield f"worker {i} is fenced off run {me.run}", now.worker(i, Worker())
            return
        dead = [m for m in run.members if now.workers[m][:3] != ("waits", me.run, me.attempt)]
        if dead:
            living = tuple(m for m in run.members if m not in dead)
            yield f"worker {i} misses {dead}", now.run(me.run, run._replace(members=living))
        elif len(run.members) == run.nodes - 1 or not self.rules.go_when_full:
            gone = run._replace(go=(i, *run.members))
            yield f"worker {i} says go", now.run(me.run, gone).worker(i, me._replace(mode="trains"))
        for m in run.members if now.crashes else ():
            living = tuple(one for one in run.members if one != m)
            fewer = now._replace(crashes=now.crashes - 1)
            yield (
                f"worker {m} sleeps, and {i} takes it for dead",
                fewer.run(me.run, run._replace(members=living)),
            )
        older = [o for r, o in enumerate(now.runs) if self._lacks(now, r) and o.age < run.age]
        if older and self.rules.yields_to_older:
            yield f"worker {i} gives run {me.run} back to join an older one", self._released(now, i)
        if self.world.timeouts and self.rules.releases_at_timeout:
            tries = run.tries + 1
            state = "ended" if tries >= TRIES else "queued"
            after = now.run(me.run, run._replace(state=state, tries=tries, leader=NOBODY, members=()))
            yield f"worker {i} has waited long enough for run {me.run}", after.worker(i, Worker())

    def _wait(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        if run.attempt != me.attempt or run.state != "claimed":
            yield f"worker {i} leaves run {me.run}", now.worker(i, Worker())
        elif not run.go and i not in run.members:
            yield f"worker {i} finds that it was given up", now.worker(i, Worker())
        elif run.go and i in run.go:
            yield f"worker {i} starts", now.worker(i, me._replace(mode="trains", rank=run.go.index(i)))
        elif run.go and not self.rules.go_names_members:
            yield f"worker {i} starts unasked", now.worker(i, me._replace(mode="trains", rank=run.nodes - 1))
        elif run.go:
            yield f"worker {i} is not in the go", now.worker(i, Worker())
        if not self._led(now, me.run) and self.rules.leaves_with_leader:
            yield f"worker {i} sees that the leader is gone", now.worker(i, Worker())

    def _train(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        over = run.attempt != me.attempt or run.state != "claimed"
        if over and (self.rules.leaves_with_leader or me.rank == 0):
            yield f"worker {i} sees that its attempt is over", now.worker(i, Worker())
        if over:
            return
        if me.mode == "trains" and me.rank not in run.parts:
            saved = run._replace(parts=run.parts | {me.rank})
            yield f"rank {me.rank} of run {me.run} writes its part", now.run(me.run, saved)
        elif me.mode == "trains":
            yield f"rank {me.rank} of run {me.run} is done", now.worker(i, me._replace(mode="done"))
        yield from self._conduct(now, i) if me.rank == 0 else self._follow(now, i)

    def _follow(self, now: State, i: int) -> Iterator[Step]:
        me = now.workers[i]
        run = now.runs[me.run]
        if not self._led(now, me.run) and self.rules.leaves_with_leader:
            yield f"worker {i} sees that the leader is gone", now.worker(i, Worker())
        if me.mode == "done" and not self.rules.leader_alone_ends:
            yield f"rank {me.rank} ends run {me.run}", now.run(me.run, run._replace(state="ended"))

    def _conduct(self, now: State, i: int) -> Iterator[Step]:
        """The leader while all train."""
        me = now.workers[i]
        run = now.runs[me.run]
        if not run.committed and (len(run.parts) == run.nodes or not self.rules.commit_after_parts):
            yield f"worker {i} commits", now.run(me.run, run._replace(committed=True))
        others = [now.workers[m] for m in run.go[1:]]
        here = [w for w in others if w.mode in ("waits", "trains", "done") and w[1:3] == me[1:3]]
        if len(here) < len(others) and self.rules.releases_when_rank_lost:
            yield f"worker {i} misses a rank and gives run {me.run} back", self._released(now, i)
        if me.mode == "done" and all(w.mode == "done" for w in others):
            after = now.run(me.run, run._replace(state="ended"))
            yield f"worker {i} ends run {me.run}", after.worker(i, Worker())

    def _released(self, now: State, i: int) -> State:
        me = now.workers[i]
        run = now.runs[me.run]
        back = Run(run.nodes, "queued", run.attempt, tries=run.tries)
        return now.run(me.run, back).worker(i, Worker())
