"""A schedule of faults: a pure function of a seed; its command to type, its smallest part that fails."""

from __future__ import annotations

import datetime
import os
import random
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER, BUCKET = "folder", "bucket"
EVERYWHERE = {"kill": 6.0, "freeze": 4.0, "clock": 2.0, "person": 4.0, "older": 1.0, "pack": 1.0}
KINDS: Mapping[str, Mapping[str, float]] = {
    FOLDER: {**EVERYWHERE, "full": 1.0, "read-only": 1.0, "eio": 1.5},
    BUCKET: {**EVERYWHERE, "cut": 1.0, "delay": 1.0, "packets": 1.0, "lost": 1.5, "busy": 1.0, "token": 1.0},
}
VICTIMS = {"run": 7, "worker": 6, "supervisor": 3, "parent": 2, "spawner": 1, "warm": 1, "other": 1}
CLOCKS = {"ahead": 1, "back": 1, "half": 1}  # hours either way, or half as fast
WORDS = {"stop": 2, "stop --now": 1, "pause": 2, "resume": 2, "retry": 1, "edit": 2}
CHOICES: Mapping[str, Mapping[str, int]] = {
    "kill": VICTIMS,
    "freeze": VICTIMS,
    "clock": CLOCKS,
    "person": WORDS,
    "busy": {"429": 1, "503": 1},
    "lost": {"answers": 1},
}

ROOT = Path(__file__).parents[2]
LASTING = {"busy": 10.0}  # leases that a fault of this kind may last where there is time: a minute


@dataclass(frozen=True)
class Deed:
    """A fault at a moment (seconds from the beginning): of which kind, to whom, and how much of it."""

    at: float
    kind: str
    what: str
    amount: float  # leases that it lasts, or hours that a clock jumps
    pick: float  # from 0 to 1: which of those that it may happen to


def schedule(seed: int, place: str, seconds: float, count: int) -> tuple[Deed, ...]:
    """So many deeds within so many seconds, in order. Pure."""
    rng = random.Random(seed)
    kinds = KINDS[place]
    moments = sorted(rng.uniform(0.0, seconds) for _ in range(count))
    return tuple(_deed(rng, kinds, round(at, 3), LASTING) for at in moments)


def one_of_each(seed: int, place: str, seconds: float) -> tuple[Deed, ...]:
    """Every kind of fault once, at moments and in an order by the seed. Pure."""
    rng = random.Random(seed)
    kinds = list(KINDS[place])
    rng.shuffle(kinds)
    moments = sorted(rng.uniform(0.0, seconds) for _ in kinds)
    return tuple(_deed(rng, {kind: 1.0}, round(at, 3)) for kind, at in zip(kinds, moments, strict=True))


def _deed(
    rng: random.Random, kinds: Mapping[str, float], at: float, lasting: Mapping[str, float] | None = None
) -> Deed:
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    choices = CHOICES.get(kind, {kind: 1})
    what = rng.choices(list(choices), list(choices.values()))[0]
    longest = (lasting or {}).get(kind, 3.0)
    amount = rng.uniform(1.0, 12.0) if kind == "clock" else rng.uniform(0.1, longest)
    return Deed(at, kind, what, round(amount, 3), round(rng.random(), 6))


def smallest(count: int, fails: Callable[[range], bool]) -> range:
    """The smallest part, found by trying halves, of `count` deeds that fail as a whole."""
    part = range(count)
    while len(part) > 1:
        middle = part.start + len(part) // 2
        halves = (range(part.start, middle), range(middle, part.stop))
        failing = next((half for half in halves if fails(half)), None)
        if failing is None:
            return part  # it takes deeds of both
        part = failing
    return part


def command(test: str, seed: int, part: range | None = None) -> str:
    """The command that makes the same schedule, or this part of it, again."""
    deeds = f"HOSTLER_DEEDS={part.start}:{part.stop} " if part is not None else ""
    return f"HOSTLER_SEED={seed} {deeds}.venv/bin/python -m pytest {shlex.quote(test)}"


def chosen(deeds: Sequence[Deed], text: str | None) -> tuple[Deed, ...]:
    """Those that HOSTLER_DEEDS names: first and end, with a colon; all without it."""
    if not text:
        return tuple(deeds)
    first, _, end = text.partition(":")
    return tuple(deeds[int(first) : int(end)])


def repeatable(otherwise: int | None = None) -> int:
    """The seed of HOSTLER_SEED, or this one; without one that of the commit. A test that fails shows the
    command that repeats it."""
    given = os.environ.get("HOSTLER_SEED", otherwise)
    seed = seed_of_commit(ROOT) if given is None else int(given)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    print(f"again: {command(test, seed)}")
    return seed


def seed_of_commit(root: Path, today: datetime.date | None = None) -> int:
    """A seed that changes with the commit; without git, with the day."""
    try:
        answer = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True)
        if answer.returncode == 0:
            return int(answer.stdout.strip()[:8], 16) % 100_000
    except OSError:
        pass
    return (today or datetime.date.today()).toordinal() % 100_000
