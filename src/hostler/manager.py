"""`hostler.Manager`: clouDL's Manager, and its test double, which needs no store.

Under a worker the trial is the run that was handed over: a sweep has as many as it has runs. By hand, trials
are given as `hyparams`: one, or a list that is gone through in order; those that are done are not done again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler import api, env
from hostler.errors import UsageError
from hostler.records.packs.packed_store import open_store
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.sdk.checkpoint.best import Best
from hostler.sdk.manager.manager import Hyparams, Trials
from hostler.sdk.manager.manager import ManagedRun as _Run
from hostler.sdk.manager.manager import Manager as _Manager
from hostler.spec.names import slug
from hostler.spec.states import DONE
from hostler.store import Store

__all__ = ["Manager", "TestManager"]


class Manager(_Manager):
    @staticmethod
    def create_manager(
        torch: Any = None,
        tmppath: str | None = None,
        rank: int | None = None,
        bucket_name: str | None = None,
        *,
        hyparams: Hyparams | Sequence[Hyparams] | None = None,
    ) -> Manager:
        """The Manager of this process. The first four are clouDL's: where things are kept, and which
        trial this is, is known without them. `hyparams`: those of one trial, or a list of several."""
        return Manager(_trials(hyparams))


class TestManager(_Manager):
    """Does all that a Manager does and keeps nothing: no store, no cloud, no checkpoint."""

    __test__ = False  # no test class, whatever its name

    @staticmethod
    def create_manager(hyparams: Hyparams | Sequence[Hyparams] = (), *_: Any, **__: Any) -> TestManager:
        given = [hyparams] if isinstance(hyparams, Mapping) else list(hyparams)
        return TestManager(_Pretended(given or [{}]))


def _trials(given: Hyparams | Sequence[Hyparams] | None) -> Trials:
    several = None if given is None or isinstance(given, Mapping) else [dict(record) for record in given]
    if env.run_dir() is not None:
        if several is not None and len(several) != 1:
            raise UsageError(
                "a worker hands over one trial, and create_manager was given a list of them",
                hint="hostler sweep makes a run of each; leave hyparams out",
            )
        return _Handed(several[0] if several else given if isinstance(given, Mapping) else None)
    if given is None:
        raise UsageError(
            "this Manager has no hyperparameters",
            hint="hostler run or hostler sweep hand them over; or create_manager(hyparams={…})",
        )
    if several is None:
        return _Handed(given if isinstance(given, Mapping) else None)
    if not several:
        raise UsageError("hyparams is an empty list", hint="give at least one trial")
    return _InTurn(several)


class _Handed:
    """A trial: the run that `start` begins or goes on with."""

    count = 1

    def __init__(self, given: Hyparams | None) -> None:
        self._given = given

    def left(self) -> Sequence[int]:
        return [0]

    def begin(self, number: int) -> tuple[_Run, Hyparams]:
        run = api.start(self._given)
        return run, run.params.plain()


class _InTurn:
    """A list of trials by hand, each a run with a name that its list and number give it.

    Rounds: while some trials have ended more often than others, those are ahead, and left alone.
    """

    def __init__(self, given: Sequence[Hyparams]) -> None:
        self._given, self.count = given, len(given)
        what = json.dumps([sys.argv[:1], list(given)], sort_keys=True, default=str)
        title = Path(sys.argv[0]).stem or "manager"
        self._name = f"{slug(title, 40)}-{hashlib.sha256(what.encode()).hexdigest()[:6]}"

    def left(self) -> Sequence[int]:
        done = _done(open_store(api._store(None)), self._name, self.count)
        ahead = [number for number, times in enumerate(done) if times > min(done)]
        return [number for number in range(self.count) if number not in ahead]

    def begin(self, number: int) -> tuple[_Run, Hyparams]:
        run = api.start(self._given[number], name=f"{self._name}-{number}")
        return run, run.params.plain()


def _done(store: Store, name: str, count: int) -> list[int]:
    """How often each trial has been done."""
    times = [0] * count
    for sweep in sweeps.names(store):
        match = re.fullmatch(rf"{re.escape(name)}-(\d+)(?:-\d+)?", sweep)
        if match and int(match[1]) < count:
            job = sweeps.load(store, sweep)
            times[int(match[1])] += control.state_of(store, RunKey(sweep, job.run_id(0))).state == DONE
    return times


class _Pretended:
    def __init__(self, given: Sequence[Hyparams]) -> None:
        self._given, self.count = given, len(given)

    def left(self) -> Sequence[int]:
        return range(self.count)

    def begin(self, number: int) -> tuple[_Run, Hyparams]:
        return _NoRun(), self._given[number]


class _NoRun:
    """A run that keeps nothing."""

    should_stop = False

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hostler-manager-"))

    @property
    def output_dir(self) -> Path:
        return self._folder / "output"

    def track(self, **objects: Any) -> None:
        for name, one in objects.items():
            if not hasattr(one, "state_dict") and not hasattr(one, "bit_generator"):
                raise UsageError(f"{name} cannot be tracked: it has no state_dict and load_state_dict")

    def log(
        self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **metrics: Any
    ) -> None: ...

    def save(self, *, wait: bool = False) -> None: ...

    def _keeps(self, best: Best) -> None: ...

    def _keeps_no(self, metric: str) -> None: ...

    def at_start(self) -> None: ...

    def at_step(self, step: int) -> None: ...

    def finish(self, **summary: Any) -> None:
        self.close()

    def close(self, error: BaseException | None = None) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
