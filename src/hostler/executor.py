"""`hostler.Executor`: calls of functions as runs, with the futures of Python's own `concurrent.futures`.

Every call is a run of the sweep of its function and code: killed, it goes on; the same call again, in another
process or tomorrow, finds the result that is there. One thread submits what was asked for and looks how the
runs are; the store knows the rest.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import inspect
import json
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from hostler import env, settings
from hostler.backends.project_file import parse_sweep
from hostler.backends.registry import HERE
from hostler.errors import CallFailed, HostlerError, MissingError, UsageError
from hostler.fleet import again, callers, pending
from hostler.fleet.edit import Edit
from hostler.fleet.fleet_choice import sweep_fleet
from hostler.fleet.function import Packed, name_of
from hostler.fleet.launcher import Launcher, foresee, sweep_launcher
from hostler.fleet.ready import say
from hostler.fleet.secrets import check_secrets
from hostler.fleet.sweep import Swept, draft_sweep, submit_calls
from hostler.money import funding
from hostler.money.tariff import Asked
from hostler.records.checkpoint import outputs
from hostler.records.launch import ledger, serving
from hostler.records.packs.packed_store import open_store
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import CAP, RunKey
from hostler.records.run.state import UNREADABLE
from hostler.records.series.logs import LogReader
from hostler.sdk.call import KEEP, RESULT_FILE, RETURNED
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.files.yaml12 import Document
from hostler.spec.job import Job, mark
from hostler.spec.plain_data import plain
from hostler.spec.project import Project
from hostler.spec.space import Listed
from hostler.spec.states import DIVERGED, DONE, ENDED, FAILED, PAUSED, RUNNING, STOPPED
from hostler.spec.units import counted
from hostler.store import Store
from hostler.sweeping import (
    as_in_file,
    check_fleet_name,
    command_of,
    packed,
    place_of,
    project_here,
    start_workers,
)

LOOK = 0.3  # seconds between two looks at the store
ALONE = 20.0  # seconds in which a worker of this machine begins
OVER = 3.0  # seconds in which a sweep that has come to a halt may go on
GATHER = 0.05  # seconds in which calls one after another become one submission


class FunctionJob(Future[Any]):
    """A call: a future whose result comes from a run."""

    def __init__(self, executor: Executor, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        super().__init__()
        self.function, self.params = function, params
        self.key: RunKey | None = None  # once it is submitted
        self._executor = executor
        self.unwanted = self._told = False

    def wait(self, timeout: float | None = None) -> FunctionJob:
        """Until the call is over, or so many seconds have passed."""
        wait_for([self], timeout)
        return self

    def cancel(self) -> bool:
        """Stop the run; it saves and ends. False if the call is over already."""
        self.unwanted = True
        if self.key is not None and not self.done():
            self._executor.stop_unwanted(self.key)
        if not super().cancel():
            return not self.done()
        self._tell()
        return True

    def _tell(self) -> None:
        """It runs, or was cancelled before: those who wait learn of that here, once."""
        with self._executor.lock:
            told, self._told = self._told, True
        if not told:
            self.set_running_or_notify_cancel()

    def cancelled(self) -> bool:
        return super().cancelled() or (self.done() and isinstance(self.exception(), CancelledError))

    def logs(self) -> str:
        """Everything that its attempts have printed so far."""
        if self.key is None:
            return ""
        pieces = LogReader(self._executor.store, self.key.run).read()
        return b"".join(piece.data for piece in pieces).decode("utf-8", "replace")

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()

    def __repr__(self) -> str:
        return f"<{name_of(self.function)} {self.key.run if self.key else 'not submitted yet'}>"

    def settle(self, row: Row) -> bool:
        """Take over the state of the run; True once it is an end."""
        if row.state == RUNNING and not (self.running() or self.done()):
            self._tell()
        if (row.state in (*ENDED, UNREADABLE) or row.trashed) and not self.done():
            with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile
                self._end(row)
        return self.done()

    def _end(self, row: Row) -> None:
        if row.state == DONE and not row.trashed:
            try:
                self.set_result(_result(self._executor.store, row.key))
            except HostlerError as error:
                self.set_exception(error)
        elif row.state == STOPPED and self.unwanted:
            self.set_exception(CancelledError())
        else:
            self.set_exception(self._failure(row))

    def _failure(self, row: Row) -> CallFailed:
        failure = row.failure or {}
        said = failure.get("message") or f"its run is {'in the trash' if row.trashed else row.state}"
        return CallFailed(
            f"{self._executor.title(self.function)}: {said}",
            f"hostler show {row.id} has all of it",
            traceback=str(failure.get("traceback") or ""),
        )

    def give_up(self, why: str) -> None:
        """Nobody carries it out."""
        title, sweep = self._executor.title(self.function), self.key.sweep if self.key else ""
        error = CallFailed(
            f"{title}: not carried out, as {sweep} is halted: {why}",
            hint="call it again once that is mended; hostler status says more",
        )
        with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile
            self.set_exception(error)


@dataclass
class _FunctionCalls:
    """Calls of one function that are not over."""

    function: Callable[..., Any]
    packed: Packed | None
    new: list[FunctionJob] = field(default_factory=list)  # not submitted yet
    waiting: list[FunctionJob] = field(default_factory=list)


class Executor:
    """Calls functions elsewhere: on a fleet of hostler.yaml, or on this machine.

    on      a fleet; by default the project's, else this machine
    name    of the sweeps, in place of the functions' names
    store   an address; by default the project's
    again   True: earlier results are not looked for
    leave   files and folders of the project that are not code, such as results
    keys    others of a sweep file: resources, python, env, parallel, retries, limits …
    """

    def __init__(
        self,
        on: str | None = None,
        *,
        name: str | None = None,
        store: str | Path | None = None,
        again: bool = False,
        leave: str | Collection[str] = (),
        **keys: Any,
    ) -> None:
        if env.run_dir():
            raise UsageError(
                "hostler.Executor was made inside a run", hint='put it below if __name__ == "__main__":'
            )
        if "max_workers" in keys:
            raise UsageError("an Executor does not take max_workers", hint="parallel=4: so many at once")
        for key in {"parameters", "command", "method", "repeat", "prune"} & keys.keys():
            raise UsageError(f"an Executor does not take {key}", hint="hostler.sweep(function, …) does")
        check_fleet_name(on)
        self._project, self._on, self._name, self._keys = project_here(), on, name, keys
        self._leave = (leave,) if isinstance(leave, str) else tuple(leave)
        self._check()
        self._mark = f"{time.time_ns():x}" if again else ""
        self.store: Store = open_store(str(store or env.store_url() or self._project.store))
        self._over: dict[str, float] = {}  # sweep → since when nobody takes more of it
        self._started: dict[str, tuple[Launcher, Swept]] = {}  # of each sweep, as it was last submitted
        self._refused: set[str] = set()  # sweeps that wait for a launch of theirs to end, which has the money
        self._capped_before: dict[RunKey, int] = {}  # calls of others that met a cap, and in which attempt
        self._alone: dict[str, tuple[float, int]] = {}  # sweep → since when nothing goes on; what was done
        self._groups: dict[Callable[..., Any], _FunctionCalls] = {}
        self.lock = threading.Lock()  # around lists of jobs
        self._working = threading.RLock()  # around everything that is done with the store
        self._asked = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def _check(self) -> None:
        """Refuse keys that no file would have, and a fleet that is not there, before anything is called."""
        file = self._file({"command": ["python"]})
        sweep_fleet(file.project, self._on, file.parallel, file.project.store)

    def _file(self, own: Mapping[str, Any]) -> SweepFile:
        """The sweep file that these calls would have; `own` are keys of the function."""
        values = {"parameters": {}, **as_in_file(self._keys), **own}
        return parse_sweep(Document("hostler.Executor", values, {}), self._project, Path.cwd() / "sweep.yaml")

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> FunctionJob:
        """Submit a call; its job comes at once."""
        [job] = self._add(function, [_params(function, args, keywords)])
        return job

    def map(self, function: Callable[..., Any], /, *iterables: Iterable[Any]) -> list[FunctionJob]:
        """A call for each item, or for the n-th items of several iterables together."""
        return self._add(function, [_params(function, args, {}) for args in zip(*iterables, strict=False)])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. `wait` until all are over; without it runs go on by themselves."""
        self._closed = True
        self._submit_new()
        jobs = self._open()
        for job in jobs if cancel_futures else ():
            job.cancel()
        if wait:
            wait_for(jobs)

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown(wait=error is None)

    def title(self, function: Callable[..., Any]) -> str:
        """The name of its calls."""
        return self._name or name_of(function)

    def _add(self, function: Callable[..., Any], calls: list[dict[str, Any]]) -> list[FunctionJob]:
        if self._closed:
            raise UsageError("this Executor has been shut down", hint="make another one")
        made = None
        if function not in self._groups:
            made = _FunctionCalls(function, packed(function, self._project))
            command_of(function, made.packed, self._project, self._keys)  # or says why not
        jobs = [FunctionJob(self, function, params) for params in calls]
        with self.lock:
            if made is not None:
                self._groups.setdefault(function, made)  # another thread may have been quicker
            self._groups[function].new.extend(jobs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="hostler executor", daemon=True)
                self._thread.start()
                atexit.register(self._submit_new)
        self._asked.set()
        return jobs

    def _serve(self) -> None:
        """Submit calls as they come, and see to those whose runs end, until there will be no more."""
        while not self._closed or self._open():
            if self._asked.wait(LOOK):
                self._asked.clear()
                time.sleep(GATHER)
            self._submit_new()
            with self._working:
                for group in list(self._groups.values()):
                    self._look(group)

    def _open(self) -> list[FunctionJob]:
        with self.lock:
            return [job for group in self._groups.values() for job in (*group.new, *group.waiting)]

    def _submit_new(self) -> None:
        with self._working:
            for group in list(self._groups.values()):
                with self.lock:
                    jobs = [job for job in group.new if not job.cancelled()]
                    group.waiting.extend(jobs)
                    group.new.clear()
                if not jobs:
                    continue
                try:
                    self._submit(group, jobs)
                except Exception as error:  # the thread serves others, and the caller waits for these
                    for job in jobs:
                        with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile
                            job.set_exception(error)

    def _submit(self, group: _FunctionCalls, jobs: list[FunctionJob]) -> None:
        command = command_of(group.function, group.packed, self._project, self._keys, KEEP)
        file = self._file({**command, "name": self.title(group.function)})
        calls = {mark("", (), job.params): job.params for job in jobs}  # equal ones are one run
        draft = draft_sweep(file, Listed(tuple(calls.values())))
        check_secrets(draft.secrets)
        workers = sweep_launcher(file.project, self.store.url, self._on, draft.parallel).prepared(self.store)
        done = submit_calls(
            self.store,
            file,
            draft,
            function=group.packed,
            leave=(*self._leave, *_programs(self._project, group, self._leave)),
            shape=callers.without_main(_own_file(self._project, group)),
            mark=self._mark,
            check=lambda found: self._check_money(workers, found),
        )
        places = _places(done.job)
        for job in jobs:
            index = places[mark(done.job.name, draft.command, job.params)]
            job.key = RunKey(done.job.name, done.job.run_id(index))
        self._try_again({job.key for job in jobs if job.key and not job.unwanted}, done.job)
        for key in {job.key for job in jobs if job.key and job.unwanted}:  # since they were taken
            self.stop_unwanted(key)
        say(f"{done.job.name}: {counted(len(jobs), 'call')}, {len(done.edit.new)} new")
        if done.version == 1 and not self._mark and (differs := callers.other_code(self.store, done.job)):
            say(f"{done.job.name}: other code than of earlier calls: {differs}")
        # a fleet of named machines has all its workers from the first time on
        whole = done.job.name in self._started and not workers.engine.capabilities.makes_machines
        self._started[done.job.name] = (workers, done)
        try:
            self._start(done.job.name, always=self._on is not None and not whole)
        except HostlerError:  # a machine that has done all of it and left is no failure
            if not self._are_taken({job.key for job in jobs}, done.job.name):
                raise

    def _start(self, sweep: str, *, always: bool) -> None:
        """Start workers; where another launch has the money, once that has ended."""
        workers, done = self._started[sweep]
        try:
            if workers.engine.capabilities.shared:  # before it is said that the calls wait for a person
                self._settle(workers, workers.asked([done.job], 1))
            start_workers(self.store, workers, done, always=always, own_python=True)
        except UsageError:
            if not ledger.read(self.store, sweep).open:
                raise
            self._refused.add(sweep)
        else:
            self._refused.discard(sweep)

    def _settle(self, workers: Launcher, asked: Asked) -> None:
        """Return what ended launches have left; refused if the rest would not do."""
        if asked.budgets and asked.price.worker:
            workers.settle(self.store)
            funding.settle(self.store, asked, settings.timing())
            foresee(self.store, asked)

    def _check_money(self, workers: Launcher, found: Edit) -> None:
        """Refuse new calls that no launch could be paid for; one that is there takes them along."""
        name = found.job.name
        if found.new and not (ledger.read(self.store, name).open or self._serves(name)):
            foresee(self.store, workers.asked([found.job], len(found.new)))

    def _serves(self, sweep: str) -> bool:
        return serving.look(self.store, _pass).serves(sweep)

    def _are_taken(self, keys: set[RunKey | None], sweep: str) -> bool:
        """Whether each of these runs goes on or is over."""
        found = rows(self.store, [sweep], touched=True)
        return keys <= {row.key for row in found if row.state in (RUNNING, *ENDED)}

    def stop_unwanted(self, key: RunKey) -> None:
        """Stop a run that no call of this program wants any more."""
        if all(job.unwanted for job in self._open() if job.key == key):
            control.stop(self.store, key, by="FunctionJob.cancel")

    def _try_again(self, keys: set[RunKey], job: Job) -> None:
        """Calls that failed, were stopped or met a cap before: whoever asks again wants them tried again, and
        those that were left because of errors."""
        for row in rows(self.store, [job.name], touched=True):
            if row.key in keys and row.state in (FAILED, DIVERGED):
                control.retry(self.store, row.key, by="hostler.Executor")
            elif row.key in keys and (row.state == STOPPED or _is_capped(row)):
                control.resume(self.store, row.key, by="hostler.Executor")
            elif _is_capped(row):
                self._capped_before[row.key] = row.attempt
        again.lift_if_asked(self.store, job)

    def _look(self, group: _FunctionCalls) -> None:
        sweeps = {job.key.sweep for job in group.waiting if job.key and not job.done()}
        try:
            found = {row.key: row for row in rows(self.store, sweeps, touched=True, trash=True, say=_pass)}
        except (HostlerError, OSError):  # the store does not answer: the next look may find it
            return
        for job in group.waiting:
            with contextlib.suppress(HostlerError, OSError):  # of its log or result: the next look
                if job.key in found:
                    job.settle(found[job.key])
        for name in sweeps:
            with contextlib.suppress(HostlerError, OSError):
                self._give_up(group, name, [row for key, row in found.items() if key.sweep == name])
        with self.lock:
            group.waiting = [job for job in group.waiting if not job.done()]

    def _give_up(self, group: _FunctionCalls, sweep: str, found: list[Row]) -> None:
        """Calls of which nobody will take any more are over: their program would wait for ever."""
        left = [job for job in group.waiting if job.key and job.key.sweep == sweep and not job.done()]
        news = [
            row for row in found if not (_is_capped(row) and self._capped_before.get(row.key) == row.attempt)
        ]
        why = pending.why_over(self.store, sweep, news) if left else ""
        if not why:
            self._over.pop(sweep, None)
        elif time.monotonic() < self._over.setdefault(sweep, time.monotonic()) + OVER:
            return  # another worker may be on its way, or a person at work
        for job in left if why else ():
            job.give_up(why)
        self._see_to_workers(sweep, [] if why else left, found)

    def _see_to_workers(self, sweep: str, left: list[FunctionJob], found: list[Row]) -> None:
        """Start workers where those of this machine are gone, or the launch that had the money is over; say
        once that workers of this machine take nothing."""
        goes_on = any(row.state == RUNNING and not row.stale for row in found)
        refused = sweep in self._refused
        if not left or goes_on or not (refused or self._started[sweep][0].fleet.backend == HERE):
            self._alone.pop(sweep, None)
            return
        since, tried = self._alone.setdefault(sweep, (time.monotonic(), 0))
        patience = ALONE * 2 ** min(tried, 4)  # a queue is asked less and less often
        if time.monotonic() < since + patience or self._serves(sweep):
            return
        self._alone[sweep] = (time.monotonic(), tried + 1)
        if tried == 0 or refused:
            try:
                self._start(sweep, always=False)
            except UsageError as error:  # its money is over, so nobody will
                for job in left:
                    job.give_up(error.message)
        elif tried == 1:
            what = counted(len(left), "call")
            say(f"{sweep}: nobody works on {what}: has this machine the resources that they ask for?")


def _is_capped(row: Row) -> bool:
    """Whether it waits for somebody to allow more."""
    return row.state == PAUSED and row.paused_by == CAP


def _pass(line: str) -> None:
    """A damaged record of another run is not this program's concern."""


def _programs(project: Project, group: _FunctionCalls, leave: Collection[str]) -> list[str]:
    """Files of the project that only make calls; a launcher of hostler's names its script in its calls."""
    if project.git is not None or group.function.__module__.startswith("hostler."):
        return []
    return callers.programs(project.root, _own_file(project, group), leave)


def _own_file(project: Project, group: _FunctionCalls) -> str:
    """The file that the function is imported from, from the project's folder on."""
    return "" if group.packed else place_of(group.function, project).rpartition(":")[0]


def _places(job: Job) -> dict[str, int]:
    """Run number by identity; of equal ones the newest, as those before it are in the trash."""
    return {job.mark(index): index for index in range(job.count)}


def _params(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by their names: the parameters of its run."""
    name = name_of(function)
    if inspect.isgeneratorfunction(function):
        raise UsageError(f"{name}() is a generator: nothing would compute its values", hint="return a list")
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{name}() is a coroutine: nothing would await it", hint="call asyncio.run in a function of yours"
        )
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except TypeError as error:
        raise UsageError(f"{name}(): {error}") from None
    except ValueError:  # a function of C
        raise UsageError(
            f"{name}() does not say what it takes", hint="call it in a function of your own"
        ) from None
    values: dict[str, Any] = {}
    for key, value in bound.arguments.items():
        more = (
            value if bound.signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD else {key: value}
        )
        if twice := values.keys() & more.keys():
            raise UsageError(f"{name}(): {min(twice)} is given by place and by name", hint="rename one")
        values |= more
    try:
        return {key: plain(value, key) for key, value in values.items()}
    except ValueError as error:
        raise UsageError(
            f"{name}(): {error}", hint="pass numbers, texts, lists and dicts, and make the rest inside"
        ) from None


def _result(store: Store, key: RunKey) -> Any:
    """The value that the function returned, from the run's end or from its file."""
    end = control.state_of(store, key).end or {}
    told = (end.get("result") or {}).get(RETURNED) or {}
    if "value" in told:
        return told["value"]
    if "file" not in told:
        why = told.get("why") or f"{key.run} ended without a result"
        raise CallFailed(why, "return plain data, or write a file to $HOSTLER_OUTPUT_DIR")
    found = outputs.newest(store, key.run)
    wanted = [row for row in found[1] if row["name"] == RESULT_FILE] if found else []
    if not wanted:
        raise MissingError(f"the result of {key.run} is not in the store", f"hostler show {key.run}")
    with tempfile.TemporaryDirectory() as folder:
        outputs.fetch(store, key.run, wanted, Path(folder))
        return json.loads(Path(folder, RESULT_FILE).read_text())
