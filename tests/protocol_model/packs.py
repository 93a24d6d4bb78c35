"""Packs: an ended run moves into a pack, while workers that slept, a person and other packers go on.

Training is cut down to one point for each attempt, written before its end. A seal makes a pack count: who has
looked at it reads the packed entries from there, and later ones from their own objects. A look holds for a
while (`fresh`); it may get old at any moment, but the originals go only when no look from before the seal
holds any more. Packs that no seal names are deleted, too. How lost answers are settled is the other
machine's matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from protocol_model.rules import Rules


class Entry(NamedTuple):
    kind: str  # claim, end, reopen
    author: int
    attempt: int = 0  # of an end


Log = tuple[Entry, ...]


class Seal(NamedTuple):
    log: Log
    points: frozenset[int]  # attempts whose point is in the pack
    after: int = 0  # seals that there were when its pack was written


class Actor(NamedTuple):
    """A worker, a person or a packer: what it remembers between two requests."""

    kind: str
    mode: str = "idle"  # puts, asked; of a worker: holds, wrote; of a packer: packs, seals, killed; left
    frozen: bool = False
    fresh: bool = False  # its last look still holds
    knows: int = 0  # number of the seal that it saw then
    head: int = 0
    attempt: int = 0
    pending: Entry | None = None
    log: Log = ()  # a packer has read these
    points: frozenset[int] = frozenset()
    after: int = 0  # seals that there were when a packer wrote its pack
    gone: bool = False  # another has deleted that

    def idle(self) -> Actor:
        """The same with nothing in hand; it looks again before it reads, so what it knew does not matter."""
        return Actor(self.kind)


@dataclass(frozen=True)
class PackWorld:
    """So many workers and packers, and what may befall them."""

    workers: int = 2
    packers: int = 1
    reopens: int = 0
    freezes: int = 0
    kills: int = 0  # of packers
    claims: int = 2
    packs: int = 2  # how often somebody begins to pack

    def __str__(self) -> str:
        bounds = (self.workers, self.packers, self.reopens, self.freezes, self.kills, self.packs)
        return "packs-" + "-".join(map(str, bounds))


class State(NamedTuple):
    actors: tuple[Actor, ...]
    log: tuple[Entry | None, ...] = ()  # objects of the log
    points: frozenset[int] = frozenset()  # objects with points
    seals: tuple[Seal, ...] = ()
    truth: Log = ()  # what was decided, by whoever was first
    freezes: int = 0
    kills: int = 0
    packs: int = 0
    broken: str = ""

    def actor(self, i: int, new: Actor) -> State:
        return self._replace(actors=(*self.actors[:i], new, *self.actors[i + 1 :]))

    def object(self, k: int) -> Entry | None:
        return self.log[k - 1] if k <= len(self.log) else None

    def create(self, k: int, entry: Entry) -> State:
        padded = self.log + (None,) * (k - len(self.log))
        after = self._replace(log=(*padded[: k - 1], entry, *padded[k:]))
        return after._replace(truth=(*self.truth, entry)) if k == len(self.truth) + 1 else after


Step = tuple[str, State]


def fold(log: Log) -> tuple[str, int]:
    """(state, attempt that holds or has ended it)."""
    state, holder = "queued", 0
    for k, entry in enumerate(log, 1):
        if entry.kind == "claim":
            state, holder = "running", k
        elif entry.kind == "end":
            state = "ended"
        else:
            state, holder = "queued", 0
    return state, holder


@dataclass(frozen=True)
class Packing:
    """The machine that the search walks through."""

    world: PackWorld
    rules: Rules = field(default_factory=Rules)

    def start(self) -> State:
        kinds = ["worker"] * self.world.workers + ["packer"] * self.world.packers
        kinds += ["person"] * self.world.reopens
        actors = tuple(Actor(kind) for kind in kinds)
        return State(actors, freezes=self.world.freezes, kills=self.world.kills, packs=self.world.packs)

    def steps(self, now: State) -> Iterator[Step]:
        for i, me in enumerate(now.actors):
            if not me.frozen:
                yield from self._acts(now, i, me)
            yield from _befalls(now, i, me)

    def broken(self, now: State) -> str:
        if now.broken:
            return now.broken
        log, points = self._seen(now, len(now.seals))
        if log != now.truth:
            return f"P11: readers see {len(log)} entries, and {len(now.truth)} were decided"
        state, attempt = fold(log)
        if state == "ended" and attempt not in points:
            return f"P4: the point of attempt {attempt}, which ended the run, is not seen"
        return ""

    def ended(self, now: State) -> bool:
        return fold(now.truth)[0] == "ended"

    def out_of_bounds(self, now: State) -> bool:
        return _claims(now.truth) >= self.world.claims

    def _seen(self, now: State, number: int) -> tuple[Log, frozenset[int]]:
        """Log and points of the run, by who has seen the seal of this number."""
        pack = now.seals[number - 1] if number else Seal((), frozenset())
        hidden = len(pack.log) if self.rules.pack_hides_late_writes else 0
        if pack.log and not self.rules.later_entries_count:
            return pack.log, pack.points
        log = list(pack.log[:hidden])
        while (entry := now.object(len(log) + 1) or _at(pack.log, len(log) + 1)) is not None:
            log.append(entry)
        later = frozenset(n for n in now.points if n > hidden)
        return tuple(log), pack.points | later

    def _acts(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        if me.mode == "puts":
            yield self._put(now, i, me)
        elif me.mode == "holds":
            after = now.actor(i, me._replace(mode="wrote"))
            yield (
                f"{i} writes the point of attempt {me.attempt}",
                after._replace(points=now.points | {me.attempt}),
            )
        elif me.mode == "wrote":
            pending = Entry("end", i, me.attempt)
            yield f"{i} is through", now.actor(i, me._replace(mode="puts", pending=pending))
        elif me.mode == "asked" and not self.rules.looks_after_create:
            yield f"{i} believes the answer", self._won(now, i, me)
        elif me.mode in ("killed", "left"):
            pass
        elif not me.fresh:
            look = me._replace(fresh=True, knows=len(now.seals))
            yield f"{i} looks for a seal: {len(now.seals)}", now.actor(i, look)
        elif me.mode == "asked":
            yield f"{i} settles", self._settle(now, i, me)
        elif me.kind == "packer":
            yield from self._packs(now, i, me)
        else:
            yield from self._reads(now, i, me)

    def _reads(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        log, _ = self._seen(now, me.knows)
        state, holder = fold(log)
        entry = None
        if me.kind == "person" and state == "ended":
            entry = Entry("reopen", i)
        if me.kind == "worker" and _claims(log) < self.world.claims:
            stale = state == "running" and now.actors[log[holder - 1].author].attempt != holder
            stale |= state == "running" and now.actors[log[holder - 1].author].frozen
            entry = Entry("claim", i) if state == "queued" or stale else None
        if entry:
            after = me._replace(mode="puts", head=len(log), pending=entry)
            yield f"{i} reads {len(log)} entries: {state}", now.actor(i, after)

    def _put(self, now: State, i: int, me: Actor) -> Step:
        assert me.pending is not None
        k = me.head + 1
        said = f"{i} puts {me.pending.kind} as entry {k}"
        if now.object(k) is not None:
            return f"{said}: exists", now.actor(i, me.idle())
        return said, now.create(k, me.pending).actor(i, me._replace(mode="asked"))

    def _settle(self, now: State, i: int, me: Actor) -> State:
        pack = now.seals[me.knows - 1].log if me.knows else ()
        packed = _at(pack, me.head + 1)
        return self._won(now, i, me) if packed in (None, me.pending) else now.actor(i, me.idle())

    def _won(self, now: State, i: int, me: Actor) -> State:
        k = me.head + 1
        assert me.pending is not None
        if now.truth[k - 1] != me.pending:
            return now._replace(broken=f"P1: {i} believes that entry {k} is its own, which was another's")
        if me.pending.kind == "claim":
            return now.actor(i, me._replace(mode="holds", head=k, attempt=k, pending=None))
        return now.actor(i, me.idle()._replace(mode="left" if me.kind == "person" else "idle"))

    def _packs(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        """Reads the log, then the points, then seals; what is sealed goes."""
        log, points = self._seen(now, me.knows)
        if me.mode == "idle":
            yield from self._deletes(now, i, me)
            known = now.seals[me.knows - 1].log if me.knows else ()
            fits = fold(log)[0] == "ended" or (log and not self.rules.packs_ended_alone)
            if now.packs and fits and log != known:
                began = me._replace(mode="packs", log=log, head=me.knows)
                began = began if self.rules.log_read_first else began._replace(log=(), points=points)
                yield f"{i} begins to pack", now._replace(packs=now.packs - 1).actor(i, began)
            if not self.rules.log_read_first and now.packs and not known:
                began = me._replace(mode="packs", points=points, head=me.knows)
                yield f"{i} reads points first", now._replace(packs=now.packs - 1).actor(i, began)
        elif me.mode == "packs" and self.rules.log_read_first:
            wrote = me._replace(mode="seals", points=points, after=len(now.seals))
            yield f"{i} reads the points and writes a pack", now.actor(i, wrote)
        elif me.mode == "packs":
            if fold(log)[0] == "ended":
                wrote = me._replace(mode="seals", log=log, after=len(now.seals))
                yield f"{i} reads the log and writes a pack", now.actor(i, wrote)
        else:
            yield from self._seals(now, i, me)

    def _seals(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        made = Seal(me.log, frozenset(n for n in me.points if n <= len(me.log)), me.after)
        if not self.rules.seal_before_delete and any(now.log[: len(me.log)]):
            k = next(k for k in range(1, len(me.log) + 1) if now.object(k))
            yield f"{i} deletes entry {k} before the seal", _without(now, k)
        elif len(now.seals) == me.head or not self.rules.seal_follows_what_was_read:
            lost = f"P11: seal {len(now.seals) + 1} names a pack that is gone" if me.gone else ""
            yield f"{i} seals", now._replace(seals=(*now.seals, made), broken=lost).actor(i, me.idle())
        else:
            yield f"{i} finds another's seal", now.actor(i, me.idle())

    def _deletes(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        """Originals go, one at a time, once no look from before the seal holds."""
        held = any(actor.fresh and actor.knows < me.knows for actor in now.actors)
        if me.knows and self.rules.seal_follows_what_was_read:  # deleting packs rests on it
            yield from self._drops(now, i, me)
        if not me.knows or (held and self.rules.pause_before_delete):
            return
        covered = len(now.seals[me.knows - 1].log)
        for k in range(1, covered + 1):
            if now.object(k):
                yield f"{i} deletes entry {k}", _without(now, k)
                break
        for n in sorted(now.points):
            if n <= covered:
                yield f"{i} deletes the point of {n}", now._replace(points=now.points - {n})
                break

    def _drops(self, now: State, i: int, me: Actor) -> Iterator[Step]:
        """Packs go that the seal it has looked at does not name. Nobody misses that of a packer which will
        find another's seal."""
        newest = now.seals[-1]
        if me.knows < len(now.seals) and self._may_drop(newest.after, me):
            yield (
                f"{i} deletes the newest pack",
                now._replace(broken=f"P11: the pack of seal {len(now.seals)} is gone"),
            )
        for j, other in enumerate(now.actors):
            missed = other.mode == "seals" and other.head == len(now.seals) and not other.gone
            if missed and self._may_drop(other.after, me):
                yield f"{i} deletes the pack of {j}", now.actor(j, other._replace(gone=True))

    def _may_drop(self, after: int, me: Actor) -> bool:
        return after < me.knows or not self.rules.drops_older_packs_alone


def _befalls(now: State, i: int, me: Actor) -> Iterator[Step]:
    if me.fresh:
        yield f"the look of {i} gets old", now.actor(i, me._replace(fresh=False))
    if me.frozen:
        yield f"{i} wakes up", now.actor(i, me._replace(frozen=False))
    elif now.freezes and me.mode not in ("idle", "killed", "left"):
        yield f"{i} freezes", now._replace(freezes=now.freezes - 1).actor(i, me._replace(frozen=True))
    if now.kills and me.kind == "packer" and not me.frozen and me.mode != "killed":
        yield f"{i} is killed", now._replace(kills=now.kills - 1).actor(i, Actor("packer", "killed"))
    if me.mode == "killed":
        yield f"{i} is started again", now.actor(i, Actor("packer"))


def _without(now: State, k: int) -> State:
    return now._replace(log=(*now.log[: k - 1], None, *now.log[k:]))


def _at(log: Log, k: int) -> Entry | None:
    return log[k - 1] if k <= len(log) else None


def _claims(log: Log) -> int:
    return sum(entry.kind == "claim" for entry in log)
