"""Follow one run from the store: its log as it comes, its end as an exit code.

Ctrl-C once asks the run to save and stop; twice kills it. SIGTERM asks it to stop, too. A run that
nobody works on is not followed for ever (`liveness.py`).
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hostler.cli.terminal.liveness import Liveness
from hostler.errors import StoreUnreachable
from hostler.records.interest import Looking
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.series.logs import LogReader
from hostler.spec.states import DONE, PAUSED, QUEUED, RUNNING, STOPPED
from hostler.spec.units import counted
from hostler.store import Store
from hostler.store.registry import is_folder
from hostler.terminal import unguarded

if TYPE_CHECKING:
    from hostler.backends.base import Backend, WorkerInfo
    from hostler.cli.terminal.loglines import Text
    from hostler.spec.project import Fleet

T = TypeVar("T")

LOOK = 0.2
BUCKET_LOOK = 1.0  # requests to a bucket cost money
SOON = 0.05  # seconds between two looks at a folder at least
PART = 10  # of the time that has gone by


def pause(waited: float, longest: float, *, folder: bool) -> float:
    """Seconds until the next look at a store by somebody who waits for runs. A folder is looked at often in
    the beginning: whoever waits for what is over in a moment is told at once. Pure."""
    return min(longest, max(SOON, waited / PART)) if folder else longest


class _Interrupts:
    """How often the person pressed Ctrl-C, or that we were told to go."""

    def __init__(self) -> None:
        self.count = 0
        self.terminated = False
        self.acted = 0

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    def terminate(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True
        self.count += 1

    @property
    def wants_out(self) -> bool:
        """Pressed since it was last acted upon."""
        return self.count > self.acted


def follow(
    store: Store,
    key: RunKey,
    engine: Backend | None = None,
    fleet: Fleet | None = None,
    workers: Sequence[WorkerInfo] = (),
    start: Callable[[], Sequence[WorkerInfo]] | None = None,
    *,
    later_than: int = 0,
    as_json: bool = False,
    raw: bool = False,
) -> int:
    """Print the log until the run ends or is set aside; returns what `hostler run` exits with. `workers`
    are those just started for it, `start` starts others should they be lost; what attempts up to
    `later_than` printed is left out. `raw`: bytes as they are, for a run that this terminal itself started;
    else escape sequences are shown."""
    reader, run_log = LogReader(store, key.run, later_than=later_than), RunLog(store, key)
    show = partial(_print, reader, None if raw else _text(), err=as_json)
    liveness = Liveness(store, key, engine, fleet, workers, start)
    abandoned = ""
    folder, begun = is_folder(store.url), time.monotonic()
    with _interrupts() as pressed, Looking(store, time.monotonic) as looking:
        while True:
            looking.look()
            state = _patiently(lambda: fold(run_log.read_on().entries), pressed)
            news = _patiently(show, pressed)
            if state.state not in (QUEUED, RUNNING):
                break
            if pressed.wants_out:
                pressed.acted += 1
                _pressed(store, key, pressed.acted)
                continue
            abandoned = _watched(liveness, state, news, pressed)
            if abandoned:
                break
            time.sleep(pause(time.monotonic() - begun, LOOK if folder else BUCKET_LOOK, folder=folder))
        _patiently(show, pressed)
    if as_json:
        from hostler.cli.terminal.named_rows import print_rows  # with all that reads rows

        print_rows(store, [key])
    if abandoned:
        click.echo(abandoned, err=True)
        return 1
    return _report(store, state, key, pressed)


def exit_code(state: RunState) -> int:
    """0 done; the script's own code if it failed with one; 75 set aside; 1 otherwise."""
    if state.state == DONE:
        return 0
    if state.state == PAUSED:
        return 75
    code = (state.end or {}).get("exit")
    if not isinstance(code, int) or code == 0:
        return 143 if state.state == STOPPED else 1
    return code if code > 0 else 128 - code


def _report(store: Store, state: RunState, key: RunKey, pressed: _Interrupts) -> int:
    failure = (state.end or {}).get("failure") or {}
    if failure:
        click.echo(f"hostler: {key.sweep} failed ({failure['kind']}): {failure['message']}", err=True)
        hint = ""
        if failure.get("advice"):
            from hostler.records.sweep.error_groups import advice  # with all that groups failures

            hint = advice(failure, key.sweep)
            click.echo(f"  → {hint}", err=True)
        from hostler.cli.terminal import missing_file  # with all that makes snapshots
        from hostler.records.sweep import sweeps

        for line in missing_file.lines(failure, lambda: sweeps.load(store, key.sweep).cwd):
            click.echo(f"  → {line}", err=True)
        if f"hostler retry {key.sweep}" not in hint:
            then = "after a repair, with today's code, from its last checkpoint"
            click.echo(f"  → hostler retry {key.sweep}   ({then})", err=True)
    elif state.state == DONE:
        _offer((state.end or {}).get("outputs"), key)
    else:
        from hostler.cli.terminal import halt_hints  # most runs end well

        then = halt_hints.out_of_hours(store, key.sweep) or f"hostler resume {key.sweep} continues it"
        click.echo(f"hostler: {key.sweep} is {state.state}; {then}", err=True)
    if pressed.terminated:
        return 143
    if pressed.count and state.state == STOPPED:
        return 130
    return exit_code(state)


def _text() -> Text:
    from hostler.cli.terminal.loglines import Text  # a run that this terminal started does without

    return Text()


def _offer(left: Any, key: RunKey) -> None:
    """Name the files that the run left, and the command that brings them."""
    if isinstance(left, dict) and left.get("files"):
        from hostler.spec.units import show_size

        count, size = int(left["files"]), show_size(int(left.get("size") or 0))
        files = f"{counted(count, 'file')} ({size})"
        click.echo(f"hostler: kept {files}; hostler pull {key.sweep} brings them here", err=True)


def _pressed(store: Store, key: RunKey, times: int) -> None:
    from hostler.records.run import control  # most runs end by themselves

    if times == 1:
        click.echo("\nhostler: asking the run to save and stop; Ctrl-C again kills it", err=True)
        control.stop(store, key, by="Ctrl-C")
        return
    click.echo("\nhostler: killed", err=True)  # its holder sees that it is over, and kills it
    control.kill(store, key, by="Ctrl-C")


def _print(reader: LogReader, text: Text | None, *, err: bool) -> bool:
    """Whether anything came. Without `text` bytes as they are: a piece may end in the middle of a letter."""
    came = False
    for piece in reader.read():
        if text is None:
            click.echo(piece.data, nl=False, file=unguarded(sys.stderr if err else sys.stdout))
        else:
            click.echo(text.of(piece.data), nl=False, err=err)
        came = True
    return came


def _watched(liveness: Liveness, state: RunState, news: bool, pressed: _Interrupts) -> str:
    return _patiently(lambda: liveness.look(state, news, time.monotonic()), pressed)


def _patiently(read: Callable[[], T], pressed: _Interrupts) -> T:
    """A store that is away for a while does not end the following; the run goes on meanwhile.

    Whoever presses Ctrl-C then can't stop the run, for its worker can't be told: only the following ends.
    """
    wait = 1.0
    while True:
        try:
            return read()
        except StoreUnreachable as error:
            click.echo(f"hostler: {error}; trying again", err=True)
            end = time.monotonic() + wait
            while time.monotonic() < end and not pressed.wants_out:
                time.sleep(LOOK)
            if pressed.wants_out:
                raise StoreUnreachable(
                    f"{error.message}, so the run could not be asked to stop",
                    hint="hostler stop asks it, when the store answers again",
                ) from error
            wait = min(wait * 2, 30.0)


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    pressed = _Interrupts()
    old = [
        (n, signal.signal(n, h))
        for n, h in ((signal.SIGINT, pressed.interrupt), (signal.SIGTERM, pressed.terminate))
    ]
    try:
        yield pressed
    finally:
        for number, handler in old:
            signal.signal(number, handler)
