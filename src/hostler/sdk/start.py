"""Begins a run in this process: the one a worker handed over, or one of the script's own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.sdk.checkpoint.state import TrackedState
from hostler.sdk.handed import HandedHome
from hostler.sdk.home import Home
from hostler.sdk.messages import say
from hostler.sdk.params import Params, collect, defaults, kept
from hostler.sdk.point_file import PointFile
from hostler.sdk.recorder import Recorder
from hostler.sdk.run import Run
from hostler.sdk.signals import Signals

if TYPE_CHECKING:
    from hostler.sdk.ranks.ranks import Ranks
    from hostler.spec.tracking import Tracking
import atexit
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from hostler.sdk.run import Run

RESUME = ("auto", "never", "must")


@dataclass(frozen=True)
class Wish:
    """The script's arguments to start()."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    resume: str = "auto"
    allow_changed: bool | tuple[str, ...] = False
    save_every: float | str | None = None
    trackers: tuple[Tracking, ...] = ()

    def check(self) -> None:
        """Raise an error for wrong arguments before anything begins."""
        if self.resume not in RESUME:
            raise UsageError(f"resume={self.resume!r} is not one of {', '.join(RESUME)}")
        if self.save_every is not None:
            from hostler.sdk.saving import policy_of  # units and all: only where it is asked for

            policy_of(self.save_every)


Alone = Callable[[Params, Wish], Home]


def begin(given: Any, wish: Wish, alone: Alone) -> Run:
    """`alone` finds and claims a run where no worker handed one over."""
    wish.check()
    CURRENT.refuse_second()
    number, rank = CURRENT.count(), env.rank()[0]
    several = _several()
    folder = env.run_dir()
    home: Home
    if folder is not None and folder.is_dir():
        home = HandedHome(folder, env.handed_run(), rank=rank)
        params = _join(home, given, wish)
    elif several and rank:
        params, home = collect(given), several.follow(number)
    else:
        params = collect(given)
        home = alone(params, wish)
        if several:
            several.announce(number, home)
    return _open(home, params, wish, several)


def take(
    folder: Path,
    of: tuple[str, str, int],
    given: Any,
    wish: Wish,
    *,
    say: Callable[[str], None],
    signals: Signals,
) -> Run:
    """Begin one of several runs that a worker gave to this process; `say` and `signals` are the caller's."""
    wish.check()
    home = HandedHome(folder, of)
    return _made(home, _join(home, given, wish), wish, None, say, signals)


def _join(home: HandedHome, given: Any, wish: Wish) -> Params:
    """Tell the worker that the library is here."""
    params = collect(given, home.params())
    facts: dict[str, Any] = {"params": kept(params), "defaults": defaults(given)}
    if wish.trackers:
        facts["trackers"] = [
            {"kind": tracker.kind, "options": dict(tracker.options)} for tracker in wish.trackers
        ]
    home.join(name=wish.name, tags=list(wish.tags), notes=wish.notes, **facts)
    return params


def _several() -> Ranks | None:
    """The ranks of this run, if it has more than one."""
    rank, count = env.rank()
    if count == 1:
        return None
    from hostler.sdk.ranks.ranks import Ranks  # most trainings have one

    return Ranks(rank, count)


def _open(home: Home, params: Params, wish: Wish, several: Ranks | None) -> Run:
    wanted = (signal.SIGTERM,) if isinstance(home, HandedHome) else (signal.SIGTERM, signal.SIGINT)
    signals = Signals(say, wanted=wanted)
    run = _made(home, params, wish, several, say, signals)
    signals.install()
    return run


def _made(
    home: Home,
    params: Params,
    wish: Wish,
    several: Ranks | None,
    say: Callable[[str], None],
    signals: Signals,
) -> Run:
    rank, ranks, agreement, board = 0, 1, None, None
    if several is not None:
        from hostler.sdk.ranks.board import board_of  # most trainings have one rank

        board = board_of(home.folder.folder, several.rank)
        rank, ranks, agreement = several.gather(board, say)
    run = Run(
        home,
        params,
        TrackedState(home, kept(params), wish.save_every, say=say, rank=rank, ranks=ranks, board=board),
        Recorder(_point_file(home, rank, say), home.folder.output, say),
        signals,
        say=say,
        on_close=CURRENT.close,
        rank=rank,
        ranks=ranks,
        agreement=agreement,
    )
    try:
        run.restore(wish.resume, wish.allow_changed)
        if several is not None and board is not None and ranks > 1:
            several.begin(board)
    except BaseException as error:
        run.close(error)
        raise
    CURRENT.open(run)
    return run


def _point_file(home: Home, rank: int, say: Callable[[str], None]) -> PointFile | None:
    name = f"metrics-{rank}.bin" if rank else home.folder.metrics.name
    try:
        return PointFile(home.folder.folder / name)
    except OSError as error:
        say(f"metrics cannot be recorded: {error}")
        return None


# The runs open in this process; disowned at a fork, closed at the process's end.


class Current:
    """A process has one run at a time, unless a worker gave it several; the next begins clean once it is
    closed."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._error: BaseException | None = None
        self._hooked = False
        self._count = 0

    @property
    def run(self) -> Run | None:
        return self._runs[-1] if self._runs else None

    def refuse_second(self) -> None:
        if self._runs:
            raise UsageError(
                f"start(): {self._runs[-1].id} is still open in this process",
                hint="run.finish() ends it, or use `with hostler.start(…) as run:`",
            )

    def count(self) -> int:
        """The number of this start in this process."""
        self._count += 1
        return self._count

    def open(self, run: Run) -> None:
        self._runs, self._error = [*self._runs, run], None
        if not self._hooked:
            self._hooked = True
            atexit.register(self._at_exit)
            os.register_at_fork(after_in_child=self._in_child)
            self._watch_errors()

    def close(self) -> None:
        """Forget those that are closed."""
        self._runs = [run for run in self._runs if not run.closed]

    def _watch_errors(self) -> None:
        """Learn of the error or exit code that ends the process; whoever showed it goes on showing it."""
        before, leave = sys.excepthook, sys.exit

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._error = error
            before(kind, error, trace)

        def noted(status: Any = None, /) -> NoReturn:
            self._error = SystemExit(status) if status else None
            leave(status)

        sys.excepthook, sys.exit = hook, noted

    def _at_exit(self) -> None:
        for run in list(self._runs):
            run.close(self._error)

    def _in_child(self) -> None:
        for run in self._runs:
            run.disown()
        self._runs = []


CURRENT = Current()
