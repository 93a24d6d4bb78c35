"""The small parent that starts a worker again when it was killed, until it leaves by itself.

It knows nothing of stores and runs, so there is little that could end it. It names every worker process (a
session) and tells the next one which sessions it has seen dead, so that their claims need not wait for a
lease. The worker holds the read end of a pipe whose other end is here: at its end the parent is dead.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from hostler.settings import Timing
from hostler.worker.session_name import new_session

FINAL = frozenset({0, 1, 2})  # left by itself, refused this machine, refused its command line
CRASHED = 70  # of a worker with a bug: not final
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
STEADY = 60.0  # seconds alive after which a death counts as the first again
REMEMBERED = 100  # dead sessions that are passed on


def argv_of(command: Sequence[str], session: str, dead: Sequence[str], pipe: int) -> list[str]:
    """The command line of one worker process."""
    argv = [*command, "--session", session, "--parent-fd", str(pipe)]
    return [*argv, "--dead", ",".join(dead)] if dead else argv


@dataclass(frozen=True)
class Restarts:
    """How often in a row the worker died young; pure."""

    count: int = 0

    def after(self, alive: float) -> Restarts:
        """Counting one more death, after so many seconds."""
        return Restarts(1 if alive >= STEADY else self.count + 1)

    def wait(self, timing: Timing) -> float:
        """Seconds before the next start: doubling, bounded."""
        return min(timing.restart_max, timing.restart_min * 2.0 ** min(self.count - 1, 30))


def keep(
    command: Sequence[str],
    *,
    timing: Timing,
    env: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda line: None,
    notice_in: float | None = None,
    requeue: Callable[[], bool | None] | None = None,
    watch: Callable[[Callable[[], None]], None] = lambda notice: None,
    place: tuple[str, int] = ("", 0),
    again: int = 0,
) -> int:
    """Run the worker until it leaves by itself; its exit code. Call it in the main thread.

    `notice_in`: so many seconds from now its time is nearly over, as SIGUSR1 would say. `watch`: is given
    what to call when the platform says so. `requeue`: has this very machine or task come back later; called
    at the end if a notice made the worker give something back. `place`: its name on its platform, and which
    tenant of it this is. `again`: exit code once it is given back."""
    keeper = _WorkerRestarter(command, timing, env, say, place)
    timer = threading.Timer(max(notice_in or 0.0, 0.0), keeper.notice)
    timer.daemon = True
    if notice_in is not None:
        timer.start()
    watch(keeper.notice)
    code = keeper.run()
    timer.cancel()
    if requeue and keeper.noticed and not keeper.ending and code not in FINAL:
        return (_give_back(requeue, say) and again) or code
    return code


def keep_nodes(
    command: Sequence[str],
    *,
    notice_in: float | None,
    requeue: Callable[[], bool | None],
    say: Callable[[str], None],
) -> int:
    """Run the command that starts a worker on each node, passing signals on; its exit code. Call it in the
    main thread. The place is given back when the last worker has left: until then one may still be saving."""
    child = subprocess.Popen(command)
    noticed, ending = threading.Event(), threading.Event()

    def forward(number: int, frame: FrameType | None) -> None:
        (noticed if number == signal.SIGUSR1 else ending).set()
        child.send_signal(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    timer = threading.Timer(max(notice_in or 0.0, 0.0), lambda: forward(signal.SIGUSR1, None))
    timer.daemon = True
    if notice_in is not None:
        timer.start()
    code = child.wait()
    timer.cancel()
    if noticed.is_set() and not ending.is_set() and code not in FINAL:
        _give_back(requeue, say)
    return _shell_code(code)


def _give_back(requeue: Callable[[], bool | None], say: Callable[[str], None]) -> bool:
    queued = requeue()
    if queued is not None:
        say("the job's time is over: " + ("it is queued again" if queued else "it could not be queued again"))
    return bool(queued)


def watch_parent(pipe: int, on_death: Callable[[], None]) -> threading.Thread:
    """In a worker: call `on_death` once, from a thread of its own, when the parent is gone."""
    os.set_inheritable(pipe, False)

    def wait() -> None:
        while os.read(pipe, 4096):
            pass
        on_death()

    thread = threading.Thread(target=wait, name="parent", daemon=True)
    thread.start()
    return thread


@dataclass
class _WorkerRestarter:
    command: Sequence[str]
    timing: Timing
    env: Mapping[str, str] | None
    say: Callable[[str], None]
    place: tuple[str, int]
    child: subprocess.Popen[bytes] | None = None
    ending: int = 0  # the signal that asked for the end
    noticed: bool = False  # its time is nearly over: who leaves now is not started again
    wake: threading.Event = field(default_factory=threading.Event)

    def run(self) -> int:
        before = {number: signal.signal(number, self._forward) for number in FORWARDED}
        try:
            return self._loop()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _loop(self) -> int:
        restarts, dead = Restarts(), list[str]()
        while True:
            session, begun = new_session("", *self.place), time.monotonic()
            code = _shell_code(self._once(session, dead))
            if code in FINAL or self.ending or self.noticed:
                return code
            dead = [*dead, session][-REMEMBERED:]
            restarts = restarts.after(time.monotonic() - begun)
            pause = restarts.wait(self.timing)
            self.say(f"worker {session} ended with {code}; starting another in {pause:g} s")
            if self.wake.wait(pause):
                return 128 + self.ending if self.ending else code

    def _once(self, session: str, dead: Sequence[str]) -> int:
        """Run a worker process in a session of its own, so that a terminal's Ctrl-C comes once, from here."""
        theirs, ours = os.pipe()
        try:
            argv = argv_of(self.command, session, dead, theirs)
            self.child = subprocess.Popen(argv, pass_fds=[theirs], env=self.env, start_new_session=True)
            os.close(theirs)
            if self.ending or self.noticed:  # it came while there was nobody to pass it to
                self.child.send_signal(self.ending or signal.SIGUSR1)
            return self.child.wait()
        finally:
            os.close(ours)

    def notice(self) -> None:
        self._forward(signal.SIGUSR1, None)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.noticed = self.noticed or number == signal.SIGUSR1
        if number != signal.SIGUSR1:
            self.ending = number
        self.wake.set()
        if self.child is not None:
            self.child.send_signal(number)


def _shell_code(code: int) -> int:
    """As a shell tells it: 128 and the signal."""
    return code if code >= 0 else 128 - code
