"""Begins a run in this process: the one a worker handed over, or one of the script's own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.sdk.current import CURRENT
from hostler.sdk.handed import HandedHome
from hostler.sdk.home import Home
from hostler.sdk.keeper import Keeper
from hostler.sdk.params import Params, collect, kept
from hostler.sdk.point_file import PointFile
from hostler.sdk.policy import Policy
from hostler.sdk.ranks import Ranks
from hostler.sdk.recorder import Recorder
from hostler.sdk.run import Run
from hostler.sdk.said import say
from hostler.sdk.signals import Signals
from hostler.spec.units import duration

RESUME = ("auto", "never", "must")


@dataclass(frozen=True)
class Wish:
    """What the script asked for."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    resume: str = "auto"
    allow_changed: bool | tuple[str, ...] = False
    save_every: float | str | None = None

    def __post_init__(self) -> None:
        if self.resume not in RESUME:
            raise UsageError(f"resume={self.resume!r} is none of {', '.join(RESUME)}")


Alone = Callable[[Params, Wish], Home]


def begin(given: Any, wish: Wish, alone: Alone) -> Run:
    """`alone` finds and claims a run where no worker handed one over."""
    CURRENT.refuse_second()
    policy = policy_of(wish.save_every)
    ranks = Ranks(*env.rank())
    number = CURRENT.count()
    folder = env.run_dir()
    home: Home
    if folder is not None and folder.is_dir():
        handed = HandedHome(folder, env.handed_run(), rank=ranks.rank)
        params = collect(given, handed.params())
        handed.join(name=wish.name, tags=list(wish.tags), notes=wish.notes)
        home = handed
    elif ranks.rank:
        params = collect(given)
        home = _follow(ranks, number)
    else:
        params = collect(given)
        home = alone(params, wish)
        if ranks.count > 1:
            ranks.announce(
                number,
                {
                    "folder": str(home.folder.folder),
                    "run": home.run,
                    "sweep": home.sweep,
                    "attempt": home.attempt,
                },
            )
    return _open(home, params, wish, policy, ranks)


def _follow(ranks: Ranks, number: int) -> HandedHome:
    """Another rank of a run by hand: it lives in rank 0's folder."""
    heard = ranks.hear(number)
    of = str(heard["run"]), str(heard["sweep"]), int(heard["attempt"])
    return HandedHome(Path(heard["folder"]), of, rank=ranks.rank)


def _open(home: Home, params: Params, wish: Wish, policy: Policy, all_ranks: Ranks) -> Run:
    rank, ranks = all_ranks.rank, 1
    if all_ranks.count > 1:
        ranks = all_ranks.gather(home.folder.folder, say)
    wanted = (signal.SIGTERM,) if isinstance(home, HandedHome) else (signal.SIGTERM, signal.SIGINT)
    keeper = Keeper(home, kept(params), policy, say=say, rank=rank, ranks=ranks)
    recorder = Recorder(_point_file(home, rank), home.folder.output, say)
    signals = Signals(say, wanted=wanted)
    run = Run(
        home, params, keeper, recorder, signals, say=say, on_close=CURRENT.close, rank=rank, ranks=ranks
    )
    try:
        if wish.resume != "never":
            keeper.restore(wish.allow_changed)
        if wish.resume == "must" and not run.resumed:
            raise UsageError(
                f"{run.id} has no checkpoint to go on from", hint='resume="auto" starts at the beginning'
            )
    except BaseException as error:
        run.close(error)
        raise
    signals.install()
    CURRENT.open(run)
    return run


def _point_file(home: Home, rank: int) -> PointFile | None:
    name = f"metrics-{rank}.bin" if rank else home.folder.metrics.name
    try:
        return PointFile(home.folder.folder / name)
    except OSError as error:
        say(f"metrics are not kept: {error}")
        return None


def policy_of(every: float | str | None) -> Policy:
    """When checkpoints are made: seconds or '10m', '500 steps', 'epoch'; None is as often as pays."""
    if every is None:
        return Policy()
    if every == "epoch":
        return Policy(every_steps=1 << 62)
    words = every.split() if isinstance(every, str) else []
    if len(words) == 2 and words[0].isdigit() and words[1] in ("step", "steps") and int(words[0]) > 0:
        return Policy(every_steps=int(words[0]), each_epoch=False)
    try:
        return Policy(every_seconds=duration(every), each_epoch=False)
    except ValueError as error:
        raise UsageError(
            f"save_every={every!r}: {error}", hint="like 300, '5m', '500 steps' or 'epoch'"
        ) from None
