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

from hostler import env
from hostler.backends.project_file import parse_sweep
from hostler.errors import CallFailed, HostlerError, MissingError, UsageError
from hostler.fleet.function import Packed, name_of
from hostler.fleet.launcher import sweep_launcher
from hostler.fleet.ready import say
from hostler.fleet.secrets import check_secrets
from hostler.fleet.sweep import draft_sweep, submit_calls
from hostler.records.checkpoint import outputs
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.run.state import UNREADABLE
from hostler.records.series.logs import LogReader
from hostler.sdk.call import KEEP, RESULT_FILE, RETURNED
from hostler.spec.files.yaml12 import Document
from hostler.spec.job import Job, mark
from hostler.spec.plain_data import plain
from hostler.spec.space import Listed
from hostler.spec.states import DIVERGED, DONE, ENDED, FAILED, RUNNING, STOPPED
from hostler.store import Store, open_store
from hostler.sweeping import as_in_file, command_of, packed, project_here, start_workers

LOOK = 0.3  # seconds between two looks at the store
GATHER = 0.05  # seconds in which calls one after another become one submission
TRACEBACK = "Traceback (most recent call last)"


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
        text = self.logs()
        lines = text[text.rfind(TRACEBACK) :].splitlines() if TRACEBACK in text else []
        trace = "\n".join(line for line in lines if not line.startswith("[hostler] "))
        return CallFailed(
            f"{name_of(self.function)}: {said}", f"hostler show {row.id} has all of it", traceback=trace
        )


@dataclass
class _FunctionCalls:
    """Calls of one function that are not over."""

    function: Callable[..., Any]
    packed: Packed | None
    new: list[FunctionJob] = field(default_factory=list)  # not submitted yet
    waiting: list[FunctionJob] = field(default_factory=list)


class Executor:
    """Calls functions elsewhere: on a fleet of hostler.yaml, or on this machine.

    on      a fleet; by default this machine
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
        store: str | None = None,
        again: bool = False,
        leave: Collection[str] = (),
        **keys: Any,
    ) -> None:
        if env.run_dir():
            raise UsageError(
                "hostler.Executor was made inside a run", hint='put it below if __name__ == "__main__":'
            )
        for key in {"parameters", "command", "method", "repeat", "prune"} & keys.keys():
            raise UsageError(f"an Executor does not take {key}", hint="hostler.sweep(function, …) does")
        self._project, self._on, self._name, self._keys = project_here(), on, name, keys
        self._leave = tuple(leave)
        self._mark = f"{time.time_ns():x}" if again else ""
        self.store: Store = open_store(store or env.store_url() or self._project.store)
        self._groups: dict[Callable[..., Any], _FunctionCalls] = {}
        self.lock = threading.Lock()  # around lists of jobs
        self._working = threading.RLock()  # around everything that is done with the store
        self._asked = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

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
        given = {
            "parameters": {},
            **as_in_file(self._keys),
            **command_of(group.function, group.packed, self._project, self._keys, KEEP),
            "name": self._name or name_of(group.function),
        }
        file = parse_sweep(Document("hostler.Executor", given, {}), self._project, Path.cwd() / "sweep.yaml")
        calls = {mark("", (), job.params): job.params for job in jobs}  # equal ones are one run
        draft = draft_sweep(file, Listed(tuple(calls.values())))
        check_secrets(draft.secrets)
        workers = sweep_launcher(file.project, self.store.url, self._on, draft.parallel).prepared(self.store)
        done = submit_calls(
            self.store, file, draft, function=group.packed, leave=self._leave, mark=self._mark
        )
        places = _places(done.job)
        for job in jobs:
            index = places[mark(done.job.name, draft.command, job.params)]
            job.key = RunKey(done.job.name, done.job.run_id(index))
        self._try_again({job.key for job in jobs if job.key and not job.unwanted}, done.job.name)
        for key in {job.key for job in jobs if job.key and job.unwanted}:  # since they were taken
            self.stop_unwanted(key)
        say(f"{done.job.name}: {len(jobs)} {'call' if len(jobs) == 1 else 'calls'}, {len(done.edit.new)} new")
        start_workers(self.store, workers, done, always=self._on is not None)

    def stop_unwanted(self, key: RunKey) -> None:
        """Stop a run that no call of this program wants any more."""
        if all(job.unwanted for job in self._open() if job.key == key):
            control.stop(self.store, key, by="FunctionJob.cancel")

    def _try_again(self, keys: set[RunKey], sweep: str) -> None:
        """Calls that failed or were stopped before: whoever asks again wants them tried again."""
        for row in rows(self.store, [sweep], touched=True):
            if row.key in keys and row.state in (FAILED, DIVERGED):
                control.retry(self.store, row.key, by="hostler.Executor")
            elif row.key in keys and row.state == STOPPED:
                control.resume(self.store, row.key, by="hostler.Executor")

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
        with self.lock:
            group.waiting = [job for job in group.waiting if not job.done()]


def _pass(line: str) -> None:
    """A damaged record of another run is not this program's concern."""


def _places(job: Job) -> dict[str, int]:
    """Run number by identity; of equal ones the newest, as those before it are in the trash."""
    return {job.mark(index): index for index in range(job.count)}


def _params(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by their names: the parameters of its run."""
    name = name_of(function)
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except (TypeError, ValueError) as error:  # ValueError: of a function of C, which has no signature
        raise UsageError(f"{name}(): {error}") from None
    given: dict[str, Any] = {}
    for key, value in bound.arguments.items():
        kind = bound.signature.parameters[key].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise UsageError(
                f"{name}(): {key} has no name to be passed by", hint=f"give {name} parameters with names"
            )
        given |= value if kind is inspect.Parameter.VAR_KEYWORD else {key: value}
    try:
        return {key: plain(value, key) for key, value in given.items()}
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
