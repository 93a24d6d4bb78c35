"""A run, as a training script holds it: parameters, metrics, loops that resume, checkpoints, its end.

What a user gets wrong raises an error that says what to do; what fails in telemetry is said once and does no
harm. A forked child owns nothing of its parent's run: what it logs is dropped.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hostler.errors import Diverged, UsageError
from hostler.sdk.checkpoint.state import TrackedState
from hostler.sdk.home import DIVERGED, FAILED, STOPPED, Home, Left
from hostler.sdk.leaving import Leaving
from hostler.sdk.loops import EPOCH, STEP, Loops
from hostler.sdk.params import Params, kept
from hostler.sdk.recorder import Recorder
from hostler.sdk.signals import Signals
from hostler.spec.states import stop_reason

if TYPE_CHECKING:
    from hostler.sdk.checkpoint.best import Best
    from hostler.sdk.ranks.agreement import Agreement
    from hostler.sdk.ranks.far_agreement import FarAgreement

T = TypeVar("T")
EARLY = "early stopping"


class Run:
    """Made by `hostler.start`; closed by `finish`, by the end of its `with` block, or with the process."""

    def __init__(
        self,
        home: Home,
        params: Params,
        keeper: TrackedState,
        recorder: Recorder,
        signals: Signals,
        *,
        say: Callable[[str], None],
        on_close: Callable[[], None],
        rank: int = 0,
        ranks: int = 1,
        agreement: Agreement | FarAgreement | None = None,
    ) -> None:
        self._home, self._keeper, self._recorder, self._signals = home, keeper, recorder, signals
        self._say, self._on_close = say, on_close
        self._position, self._best, self._add = keeper.position, keeper.best, recorder.add
        self._loops = Loops(self._position, _LoopBoundaries(self))
        keeper.at_boundary(self._between_batches)
        self._lock = threading.RLock()
        self._closed = ""  # what closed it
        self._plain = False  # said that a loop is not one of ours
        self._forked = ""  # this is a child of the process whose run it is
        self._told = False  # the script knows that it should stop
        self._asks = False  # the script looks for stop requests itself
        self._wanted = self._waits = False  # a checkpoint was asked for inside an iteration
        signals.listens = lambda: self._asks or self._position.loops > 0
        self._agreement = agreement
        self.params, self.rank, self.ranks = params, rank, ranks
        self.summary: dict[str, Any] = {}

    @property
    def id(self) -> str:
        return self._home.run

    @property
    def sweep(self) -> str:
        return self._home.sweep

    @property
    def attempt(self) -> int:
        return self._home.attempt

    @property
    def closed(self) -> bool:
        return bool(self._closed)

    @property
    def resumed(self) -> bool:
        """Whether it goes on from a checkpoint."""
        return self._keeper.resumed

    @property
    def checkpoint_dir(self) -> Path:
        """Files left here come back in the next attempt. The library's own checkpoints lie here, too."""
        return self._home.folder.checkpoint

    def _survive_kills(
        self, *names: str, scratch: Iterable[str] = (), marked: Mapping[str, str] | None = None
    ) -> None:
        """For callbacks: these files of `checkpoint_dir` are complete whenever they are there, those of
        `scratch` never. `marked`: folder → name of the file that completes a numbered folder in it."""
        from hostler.records.run import handoff  # few scripts need it

        word = {"names": list(names), "scratch": list(scratch), "marked": dict(marked or {})}
        handoff.write(self._home.folder.atomic, word)

    @property
    def output_dir(self) -> Path:
        """Files left here are kept with the run."""
        return self._home.folder.output

    @property
    def step(self) -> int:
        """Steps done, of all `steps` loops; without any, epochs done."""
        return self._position.now

    @property
    def best(self) -> dict[str, float]:
        """metric → its best value so far, of those named by `keep_best`."""
        return {name: best.value for name, best in self._keeper.best.items() if best.value is not None}

    @property
    def memory(self) -> dict[str, Any]:
        """Small things that the script wants back after a resume, such as the id of a tracker's run."""
        return self._keeper.memory

    def _repr_html_(self) -> str:
        """As Jupyter shows it."""
        from hostler.records.rich import of_facts

        facts = [("id", self.id), ("attempt", self.attempt), ("step", self.step)]
        return of_facts(
            self.sweep,
            [*facts, *dict(self.params).items(), *((f"best {n}", v) for n, v in self.best.items())],
        )

    def log(
        self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **metrics: Any
    ) -> None:
        """Log metrics at a step (counted, if absent). It takes microseconds, never waits and never fails.

        Numbers become points, safe against a killed process once this returns. Text, arrays and pictures are
        kept as files of the run. What cannot be kept is said, once per name."""
        if self._closed:
            self._log_closed()
        if values is not None:
            metrics = {**values, **metrics} if isinstance(values, Mapping) else {"value": values, **metrics}
        if step is None:
            step = self._position.logged(metrics)
        try:
            self._add(step, metrics)
        except Exception:  # not only numbers, or no room: the long way round says which
            self._recorder.sort_out(step, metrics)
        if self._best:
            self._keeper.weigh(metrics, step)

    def epochs(self, count: int) -> Iterator[int]:
        """0, 1, … count-1; after a resume from where it was. Checkpoints are made between epochs. After a
        stop request it saves and leaves the process."""
        self._check("epochs")
        return self._loops.epochs(count)

    @overload
    def steps(self, what: int) -> Iterator[int]: ...

    @overload
    def steps(self, what: Iterable[T]) -> Iterator[T]: ...

    def steps(self, what: Any) -> Iterator[Any]:
        """0, 1, … count-1, or the items of an iterable; after a resume from where it was. Like `epochs`, and
        may stand inside of it."""
        self._check("steps")
        itself = self._keeper.is_tracked(what)
        if self._keeper.has_loader and not itself and isinstance(what, Iterator):
            raise UsageError(
                "steps() cannot see the position of a loader inside another iterator",
                hint="give it the tracked loader itself: enumerate(run.steps(loader))",
            )
        return self._loops.steps(what, itself=itself)

    def track(self, **objects: Any) -> None:
        """Keep these in every checkpoint, and load them now if the run goes on from one: anything with
        `state_dict` and `load_state_dict`."""
        self._check("track")
        self._keeper.track(**objects)

    def save(self, *, wait: bool = False) -> None:
        """Make a checkpoint: now, or in a loop at the end of this iteration, where the run can go on from it.
        The loop waits for a copy in memory; with `wait`, until it is on the disk."""
        self._check("save")
        if self._position.depth:
            self._wanted, self._waits = True, self._waits or wait
        else:
            self._keeper.save(self._recorder.points, wait=wait)

    def chose(self, **params: Any) -> None:
        """Parameters that nobody gave and the script settled itself, such as a seed that it drew: they are
        shown with the run and stand in frames."""
        self._check("chose")
        if self.rank:
            return
        from hostler.records.run import handoff  # few scripts choose

        path = self._home.folder.chosen
        try:
            handoff.write(path, {**(handoff.read(path) or {}), **kept(params)})
        except OSError as error:
            self._say(f"the values chosen for {', '.join(params)} could not be recorded: {error}")

    def keep_best(self, metric: str, goal: str = "max") -> None:
        """Keep what is tracked as it was at the best value of this metric, in `output_dir/best`."""
        self._check("keep_best")
        self._keeper.keep_best(metric, goal)

    def _keeps(self, best: Best) -> None:
        """For the Manager: it keeps the weights of this value as the best."""
        self._keeper.note_kept(best)

    def _keeps_no(self, metric: str) -> None:
        """For the Manager: other weights than the best ones are what is left of the run."""
        self._keeper.forget_kept(metric)

    def _saves_inside(self, steps: int) -> None:
        """A checkpoint that is due at the end of an epoch waits for so many steps of the next: a device that
        works ahead of the program has something to do while the state is gathered."""
        self._keeper.put_off = steps

    def _ends_early(self) -> None:
        """Early stopping ends the training: the run is done, and says so."""
        if self.rank:
            return
        from hostler.records.run import handoff  # few runs end so

        try:
            handoff.write(self._home.folder.early, {"why": EARLY, "step": self.step})
        except OSError as error:
            self._say(f"that early stopping ended the run could not be recorded: {error}")

    @property
    def should_stop(self) -> bool:
        """Whether the run should save and leave. `epochs` and `steps` look by themselves."""
        self._asks = True
        self._told = self._told or self._reason() is not None
        return self._told

    @property
    def asked_to_stop(self) -> str | None:
        """Why it should save and leave; None if it should not."""
        return self._reason()

    def at_start(self) -> None:
        """For loops of other libraries: the loop begins here, where it was when the checkpoint was made."""
        self._check("at_start")
        self._asks = True
        self._keeper.resume_rng()

    def at_step(self, step: int) -> None:
        """For loops of other libraries, between two iterations: so many are done. Like the end of an
        iteration of `epochs`: saves if it is time, and leaves after a stop request."""
        self._check("at_step")
        self._asks = True
        self._position.reach(int(step))
        self._boundary(EPOCH)

    def _reached(self, step: int) -> None:
        """So many steps are done, and no more: nothing is saved here, nor is this a place to leave."""
        self._position.reach(step)

    def artifact(self, path: str | Path, name: str | None = None) -> Path:
        """Keep a file or folder with the run: a copy in `output_dir`, whose path is returned."""
        self._check("artifact")
        source = Path(path)
        target = self.output_dir / (name or source.resolve().name or "root")
        if not source.exists():
            raise UsageError(f"{source} does not exist", hint="give artifact() an existing file or folder")
        if not target.resolve().is_relative_to(self.output_dir.resolve()):
            raise UsageError(
                f"artifact {name!r} would lie outside the output folder", hint="give a plain name"
            )
        if source.resolve() != target.resolve():
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
        return target

    def finish(self, **summary: Any) -> None:
        """The run is done, with this result. A last checkpoint says so: whatever is killed from here on,
        nothing is trained again."""
        self._check("finish")
        self.summary.update(summary)
        if self._keeper.has_stopped_early:
            self._ends_early()
        self._closed = "finish()"
        if self._agreement is not None:
            self._agreement.leave()
        try:
            self._keeper.finish(self._recorder.points, self.summary)
            self._recorder.close()
            self._home.finish(self.summary)
        finally:
            self._shut()

    def restore(self, resume: str, allowed: bool | Iterable[str]) -> None:
        """Go on from the newest checkpoint, as the script wishes."""
        if resume == "never":
            self._keeper.begin_anew()
        else:
            self._keeper.restore(allowed)
        if resume == "must" and not self.resumed:
            raise UsageError(
                f"{self.id} has no checkpoint to resume from", hint='resume="auto" starts at the beginning'
            )

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """The end of the `with` block, or of the process. It is finished unless an error or a stop request
        ended it."""
        if self._closed:
            return
        if error is None and not self._told and not self._position.depth:
            self.finish()
            return
        self._closed = "its end"
        try:
            self._keeper.close()
            self._recorder.close()
            self._home.leave(self._left(error))
        finally:
            self._shut()

    def disown(self) -> None:
        """In a forked child: the run is the parent's."""
        self._closed, self._forked = self._closed or "a fork: the run belongs to the parent process", "new"
        self._recorder.disown()
        self._add = self._recorder.add
        self._home.disown()

    def _left(self, error: BaseException | None) -> Left:
        reason = self._signals.reason or self._home.stop_reason() or ""
        if (
            error is None
            or isinstance(error, (Leaving, KeyboardInterrupt))
            or (isinstance(error, SystemExit) and error.code in (None, 0, 75))
        ):
            return Left(STOPPED, reason or "interrupt")
        if isinstance(error, Diverged):
            return Left(DIVERGED, reason, error.message)
        import traceback  # only for a run that failed

        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        kind, lines = type(error), str(error).strip().splitlines()
        name = (
            kind.__qualname__
            if kind.__module__ in ("builtins", "__main__")
            else f"{kind.__module__}.{kind.__qualname__}"
        )
        return Left(FAILED, reason, f"{name}: {lines[0]}" if lines else name, text)

    def _between_batches(self) -> None:
        """Act on a tracked loader's boundary, unless a loop around it would begin anew after a restart."""
        if self._position.loops or self._position.begun:
            self._boundary(STEP)
            return
        if not self._plain:
            self._plain = True
            self._say(
                "no checkpoints are made inside this loop over a tracked loader: the loop around it would "
                "begin anew after a restart; use `for epoch in run.epochs(n)`, which resumes"
            )
        if self._reason() is not None:
            self._boundary(STEP)

    def _boundary(self, kind: str) -> None:
        """Between two iterations: save if it is time, leave if it was asked for."""
        if self._closed:
            return
        reason = self._reason()
        due = self._wanted or (self.rank == 0 and self._keeper.due(kind))
        if self._agreement is not None and not self._wanted:
            due, reason = self._agree(due, reason)
        if reason is not None:
            self._leave(reason)
        if due:
            self._keeper.save(self._recorder.points, wait=self._waits)
            self._wanted = self._waits = False

    def _agree(self, due: bool, reason: str | None) -> tuple[bool, str | None]:
        """Several ranks save at one and the same boundary, which rank 0 chooses."""
        agreement, tick = self._agreement, self._position.ticks
        assert agreement is not None
        if self.rank == 0 and (due or reason is not None):
            agreement.propose(tick, reason)
        agreed = agreement.now(tick)
        if agreed is None:
            return False, None
        met = agreement.met(tick, agreed)
        if not met and self.rank == 0:
            self._say("checkpoint skipped: the ranks are not at the same step")
        return met, agreed.reason if met else None

    def _leave(self, reason: str) -> None:
        self._told = True
        why = stop_reason(reason)
        if self._keeper.saves:
            self._keeper.save(self._recorder.points, wait=True)
            self._say(f"{self.id}: saved at {self._keeper.place}, stops: {why}")
        else:
            self._say(f"{self.id} stops: {why}; nothing is tracked, so the next attempt begins anew")
        raise Leaving(reason)

    def _reason(self) -> str | None:
        return self._signals.reason or self._home.stop_reason()

    def _shut(self) -> None:
        self._signals.uninstall()
        self._on_close()

    def _log_closed(self) -> None:
        """A forked child's own code may log, such as a data set's: it is dropped, and said once."""
        if not self._forked:
            self._refuse("log")
        if self._forked == "silent":
            return
        self._forked = "silent"
        self._say("log() in a forked process is dropped: the run belongs to its parent")

    def _check(self, what: str) -> None:
        if self._closed:
            self._refuse(what)

    def _refuse(self, what: str) -> None:
        raise UsageError(
            f"{what}: {self.id} is closed by {self._closed}", hint="hostler.start() begins the next run"
        )


class _LoopBoundaries:
    """The run, as its loops see it."""

    def __init__(self, run: Run) -> None:
        self.boundary = run._boundary
        self.epoch_began = run._keeper.epoch_began
        self.goes_on = run._keeper.resume_rng
