"""`hostler logs`: prints the output of runs; `-f` follows until they have ended."""

from __future__ import annotations

import json
import re
import time

import click

from hostler.cli import here
from hostler.cli.terminal import output
from hostler.cli.terminal.liveness import Liveness
from hostler.cli.terminal.loglines import LogLines, print_line
from hostler.errors import MissingError, UsageError
from hostler.records.interest import Looking
from hostler.records.rows import display_name
from hostler.records.run import history, resolve
from hostler.records.run.history import tries
from hostler.records.run.log import RunKey, RunLog, readable
from hostler.records.run.state import fold
from hostler.records.series.logs import LogReader
from hostler.records.sweep import sweeps
from hostler.spec.project import Project
from hostler.spec.states import QUEUED, RUNNING
from hostler.store import Store

LOOK = 0.2  # seconds between two looks, at first
LOOK_MAX = 2.0  # and while nothing comes


def command(
    names: tuple[str, ...],
    follow: bool,
    attempt: int | None,
    tail: int | None,
    grep: str | None,
    raw: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Print the output of runs, or of the newest sweep; each line of several begins with the run's name."""
    if len(names) == 1 and show(here.project(), names[0], tail, raw=raw):
        return 0
    store = here.open_here(store_url)
    meant = here.named_or_newest(store, names, or_before=True)
    keys = list(dict.fromkeys(key for name in meant for key in resolve.runs(store, name)))
    pattern = _pattern(grep)
    shown = [_Shown(store, key, attempt, tail, pattern, len(keys) > 1, as_json, raw) for key in keys]
    for one in shown:
        one.print_new()
    if follow:
        with Looking(store, time.monotonic) as looking:
            _follow(shown, looking)
    for one in shown:
        one.finish()
    if not follow and not any(one.printed for one in shown):
        click.echo(f"hostler: {_silence(shown)}", err=True)
    return 0


class _Shown:
    """A run's log on its way to the terminal."""

    def __init__(
        self,
        store: Store,
        key: RunKey,
        attempt: int | None,
        tail: int | None,
        pattern: re.Pattern[str] | None,
        many: bool,
        as_json: bool,
        raw: bool,
    ) -> None:
        self.name = _name(store, key) if many or as_json else key.sweep
        self._many, self._json, self._raw = many, as_json, raw
        self._liveness = Liveness(store, key)
        say = output.saying()
        self._log = readable(RunLog(store, key), say)
        self._reader = LogReader(store, key.run, self._number(attempt), say=say)
        if tail is not None and pattern is None:
            self._reader.start_near_end(tail)
        self._lines = LogLines(pattern, tail)
        self._attempt: int | None = None
        self.printed = False

    @property
    def state(self) -> str:
        return fold(self._log.entries).state

    def over(self) -> bool:
        """Whether nothing more will come: it has ended, or is set aside."""
        damage = list[str]()  # said already; nobody works on a run whose log cannot be read
        state = fold(readable(self._log, damage.append).entries).state
        return bool(damage) or state not in (QUEUED, RUNNING)

    def deserted(self, news: bool) -> str:
        """A hint if no worker is at the run; following goes on: one may come."""
        return self._liveness.look(fold(self._log.entries), news, time.monotonic())

    def print_new(self) -> bool:
        found = False
        for piece in self._reader.read():
            self._lines.add(piece)
        for attempt, line in self._lines.take():
            self._print(attempt, line)
            found = True
        return found

    def finish(self) -> None:
        self._lines.finish()
        self.print_new()

    def _print(self, attempt: int, line: str) -> None:
        self.printed = True
        if self._json:
            ordinal = history.ordinal(self._log.entries, attempt)
            click.echo(json.dumps({"run": self.name, "attempt": ordinal, "line": line}))
            return
        if attempt != self._attempt and (self._attempt is not None or self._first() != attempt):
            click.echo(self._separator(attempt))
        self._attempt = attempt
        print_line(line, f"{self.name}: " if self._many else "", raw=self._raw)

    def _first(self) -> int:
        found = tries(self._log.entries)
        return found[0].number if found else 0

    def _separator(self, attempt: int) -> str:
        one = next((one for one in tries(self._log.entries) if one.number == attempt), None)
        where = f" on {one.host}" if one and one.host else ""
        when = time.strftime(", %Y-%m-%d %H:%M:%S", time.localtime(one.started)) if one else ""
        prefix = f"{self.name}: " if self._many else ""
        return f"{prefix}──── attempt {one.ordinal if one else attempt}{where}{when} ────"

    def _number(self, attempt: int | None) -> int | None:
        """The claim's number of the attempt that a person calls 1, 2 or 3."""
        if attempt is None:
            return None
        numbers = {one.ordinal: one.number for one in tries(self._log.entries)}
        if attempt not in numbers:
            there = ", ".join(map(str, numbers)) or "none yet"
            raise MissingError(f"{self.name} has no attempt {attempt}", hint=f"attempts: {there}")
        return numbers[attempt]


def _follow(shown: list[_Shown], looking: Looking) -> None:
    """The state is read before the log, so that nothing printed before the end is missed."""
    open_ones, wait = list(shown), LOOK
    warn = len(shown) == 1
    while open_ones:
        looking.look()
        ended = [one for one in open_ones if one.over()]
        came = [one.print_new() for one in open_ones]
        if warn and not ended and (text := open_ones[0].deserted(any(came))):
            click.echo(text, err=True)
            warn = False
        open_ones = [one for one in open_ones if one not in ended]
        wait = LOOK if any(came) else min(wait * 1.2, LOOK_MAX)
        if open_ones:
            time.sleep(wait)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text is not None else None
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None


def _name(store: Store, key: RunKey) -> str:
    return display_name(sweeps.load(store, key.sweep), key.index)


def _silence(shown: list[_Shown]) -> str:
    if len(shown) > 1:
        return f"none of these {len(shown)} runs has printed such a line"
    one = shown[0]
    if one.state == QUEUED:
        return f"{one.name} is queued: nothing printed yet; -f waits for it"
    return f"{one.name} is {one.state} and has printed no such line"


# What machines that came with a fleet printed themselves: `hostler logs FLEET`, or FLEET/MACHINE.


def show(project: Project, name: str, tail: int | None, *, raw: bool) -> bool:
    """Print the output of a fleet's machines; False if the name is not such a fleet."""
    fleet, _, machine = name.partition("/")
    if fleet not in project.fleets:
        return False
    from hostler.backends.base import Cloud  # a run's log needs nothing of fleets
    from hostler.backends.registry import backend_of
    from hostler.fleet.fleet_choice import fleet_of

    meant = fleet_of(project, fleet)
    engine = backend_of(meant)
    if not isinstance(engine, Cloud):
        return False
    workers = [worker for worker in engine.list(meant) if machine in ("", worker.host)]
    if not workers:
        there = f"machine {machine}" if machine else "machine"
        raise MissingError(
            f"{fleet} has no {there} at the moment", hint="hostler logs RUN prints the output of a run"
        )
    for worker in workers:
        lines = engine.logs(worker).decode("utf-8", "replace").splitlines()
        for line in lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]:
            print_line(line, f"{worker.host}: " if len(workers) > 1 else "", raw=raw)
    return True
