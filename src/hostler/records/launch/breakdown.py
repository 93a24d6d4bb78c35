"""The cost of a launch by purpose: training, booting, saving, repeated work, idle, tail.

They add up to all that it cost.

Each machine is one stretch of time. Until its first worker it boots, after its last run comes the tail, and
where no run is in between it is idle. The rest is its attempts': they prepare, train and save, and what a
later attempt did not go on from was done in vain. A platform that tells when machines came and went is
believed; else the notes of workers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.launch import launches, settlement
from hostler.records.launch.launches import Generation, Stay
from hostler.records.run import history, log
from hostler.records.run.log import RunKey, RunLog
from hostler.settings import Timing
from hostler.spec.states import DONE
from hostler.store import Store

Lives = Mapping[str, tuple[float, float]]  # machine → from when to when it was paid for


@dataclass(frozen=True)
class Breakdown:
    """Money by purpose."""

    training: float = 0.0
    booting: float = 0.0  # until a script runs: the machine, hostler, code and packages
    saving: float = 0.0  # after it, until everything is in the store
    repeated: float = 0.0  # done in vain: a later attempt began before it
    idle: float = 0.0
    tail: float = 0.0  # after a machine's last run

    @property
    def total(self) -> float:
        return float(sum(getattr(self, field.name) for field in fields(self)))

    def __add__(self, other: Breakdown) -> Breakdown:
        return Breakdown(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def times(self, price: float) -> Breakdown:
        """Hours of each become money."""
        return Breakdown(*(getattr(self, field.name) * price for field in fields(self)))


@dataclass(frozen=True)
class Work:
    """An attempt, in seconds since 1970 and seconds."""

    session: str
    began: float
    ended: float
    prepare: float = 0.0
    save: float = 0.0
    vain: float = 0.0  # at its end, and not repeated by itself


def explain(
    one: Generation, stays: Sequence[Stay], works: Sequence[Work], lives: Lives, now: float, timing: Timing
) -> Breakdown:
    """Money of a launch by purpose. Pure."""
    machines: dict[str, list[Stay]] = {}
    for stay in stays:
        machines.setdefault(stay.machine or stay.session, []).append(stay)
    total = Breakdown()
    for name, some in machines.items():
        price = next((stay.price for stay in some if stay.price is not None), one.price or 0.0)
        began, ended = lives.get(name) or _noted(some, now, timing)
        own = [work for work in works if work.session in {stay.session for stay in some}]
        first = min(stay.modified - stay.seconds for stay in some)
        used = sum(stay.used for stay in some) / price * 3600 if price else 0.0
        total += _machine(began, ended, first, own, used).times(price / 3600)
    never = [ended - began for name, (began, ended) in lives.items() if name not in machines]
    return total + Breakdown(booting=sum(never)).times((one.price or 0.0) / 3600)


def _noted(some: Sequence[Stay], now: float, timing: Timing) -> tuple[float, float]:
    """From when to when a machine was there, by what its workers noted; one that is silent counts a note
    more."""
    newest = max(some, key=lambda stay: stay.modified)
    lasted = settlement.seconds(some, now, timing)
    began = min(stay.modified - (stay.age if stay.machine else stay.seconds) for stay in some)
    return began, max(began + lasted, newest.modified)


def _machine(began: float, ended: float, first: float, works: Sequence[Work], used: float) -> Breakdown:
    """Seconds of one machine by purpose; they add up to its time. `used`: seconds that runs took by the
    worker's own count, where it holds no claim: a member of a gang."""
    whole = max(0.0, ended - began)
    boot = min(whole, max(0.0, first - began))
    spans = [(max(began + boot, work.began), min(ended, work.ended)) for work in works]
    busy = _union([span for span in spans if span[1] > span[0]])
    if not busy:
        train = min(used, whole - boot)
        return Breakdown(training=train, booting=boot, idle=whole - boot - train)
    tail = max(0.0, ended - max(work.ended for work in works))
    active = min(sum(end - start for start, end in busy), whole - boot - tail)
    parts = _parts(works)
    scale = active / (parts.total or 1.0)
    return parts.times(scale) + Breakdown(booting=boot, idle=whole - boot - tail - active, tail=tail)


def _parts(works: Sequence[Work]) -> Breakdown:
    """Seconds of attempts by purpose; several at a time each count."""
    breakdown = Breakdown()
    for work in works:
        whole = max(0.0, work.ended - work.began)
        prepare = min(work.prepare, whole)
        save = min(work.save, whole - prepare)
        vain = min(work.vain, whole - prepare - save)
        train = whole - prepare - save - vain
        breakdown += Breakdown(train, prepare, save, vain)
    return breakdown


def _union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def works_of(store: Store, names: Iterable[str], now: float, say: Callable[[str], None]) -> list[Work]:
    """Attempts of all runs of these sweeps. `say` gets what cannot be read, and that run is left out."""
    works: list[Work] = []
    for name in names:
        try:
            heads = log.heads(store, name)
        except (DamagedError, NewerFormatError) as error:
            say(f"{name} is left out: {error}")
            continue
        for run, head in heads.items():
            try:
                entries = RunLog(store, RunKey(name, run)).read_to(head).entries
                works += attempts(entries, now)
            except (DamagedError, NewerFormatError) as error:
                say(str(error))
    return works


def attempts(entries: Sequence[Record], now: float) -> Iterator[Work]:
    """Attempts of one run, by its log. Pure."""
    tries = history.tries(entries)
    for n, one in enumerate(tries):
        closing = history.closing(entries, one.number) or {}
        lasted = one.seconds if one.seconds is not None else (one.ended or now) - one.started
        phases = closing.get("phases") or {}
        vain = 0.0
        if n + 1 < len(tries) and closing.get("state") != DONE:
            vain = _vain(entries, one.number, one.started + lasted, tries[n + 1])
        yield Work(
            one.session,
            one.started,
            one.started + lasted,
            float(phases.get("prepare", 0.0)),
            float(phases.get("save", 0.0)),
            vain,
        )


def _vain(entries: Sequence[Record], number: int, ended: float, later: history.Try) -> float:
    """Seconds of an attempt after the checkpoint that the next one went on from; all of them if it had none
    of its own."""
    record = history.closing(entries, later.number) or {}
    if not record:
        return 0.0  # lost or going on: it has not said where it began
    phases = record.get("phases") or {}
    began = phases.get("from")
    place = str(record.get("restored") or "").partition("-")[0]
    if began is None or place != str(number):
        return ended
    return max(0.0, ended - float(began))


def read(
    store: Store, one: Generation, lives: Lives, now: float, timing: Timing, say: Callable[[str], None]
) -> Breakdown:
    """The breakdown of a launch, by its records. `say`: as of `works_of`."""
    stays = launches.stays(store, one.fleet, one.number)
    return explain(one, stays, works_of(store, one.sweeps, now, say), lives, now, timing)
