"""Details of a run, everything the store knows, read once: `show` prints and `diff` compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import defaults, layout
from hostler.records.body import Record
from hostler.records.checkpoint import outputs, selection
from hostler.records.checkpoint.selection import KeptCheckpoint
from hostler.records.rows import Row, row_by_key
from hostler.records.run import surroundings, tracked
from hostler.records.run.history import Event, Try, events, tries, unkept
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.run.tracked import Tracked
from hostler.records.series import metrics
from hostler.records.series.metrics import Fragment, FragmentCache
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import NotFound, Store

Say = Callable[[str], None]
A = TypeVar("A")


@dataclass(frozen=True)
class CheckpointDetails:
    """A committed checkpoint: its name (attempt-number), files and bytes."""

    name: str
    files: int
    size: int
    finished: bool
    step: int
    value: float | None  # of the run's metric, at that step
    saved: float | None  # when, by its writer's clock
    kept: bool  # retention passes it over


@dataclass(frozen=True)
class Dossier:
    row: Row
    chosen: Record  # parameters that its script chose itself, without what are defaults
    job: Job  # with the code of the newest reopen
    tries: list[Try]
    events: list[Event]
    metrics: dict[str, dict[str, float]]  # last, min, max, and the step of the last
    checkpoints: list[CheckpointDetails]  # newest first
    outputs: list[Record]  # name, size, sha256
    unkept: list[str]  # a line for each reason why files of its working folder are not among them
    environment: Record | None  # of the newest attempt that wrote one
    result: Record | None  # what finish() was given
    tracked: list[Tracked]  # in tracking tools
    recognised: list[str]  # metrics that were read from its output


def read(store: Store, key: RunKey, say: Say = lambda line: None, job: Job | None = None) -> Dossier:
    """Read the details of a run that exists. What cannot be read is said, and left out. `job`: its sweep's
    spec, where it has been read already."""
    run_log = RunLog(store, key)
    whole = _whole(lambda: bool(run_log.read_on()), False, say)
    entries = run_log.entries
    state = fold(entries)
    job = job or sweeps.load(store, key.sweep)
    row = row_by_key(store, job, key, _Own(key, say), run_log.head if whole else 0)
    if row is None:
        raise DamagedError(f"{key.run} cannot be shown: its records are damaged", "was one edited by hand?")
    numbers = [attempt.number for attempt in tries(entries)][::-1]
    fragments = _whole(lambda: FragmentCache().update(store, key.run), list[Fragment](), say)

    def ran_on(attempt: int) -> Record | None:
        return _whole(lambda: surroundings.of_attempt(store, key.run, attempt, entries), None, say)

    return Dossier(
        row=row,
        chosen=_chosen(store, job, row, entries),
        job=sweeps.with_source(job, state),
        tries=tries(entries),
        events=events(entries),
        metrics=_metrics(fragments, state),
        checkpoints=[
            _saved(checkpoint) for checkpoint in selection.kept(store, key.run, job.metric, fragments, say)
        ],
        outputs=_whole(lambda: _outputs(store, key.run, numbers), [], say),
        unkept=unkept(entries),
        environment=next(filter(None, map(ran_on, numbers)), None),
        result=(state.end or {}).get("result"),
        tracked=_whole(lambda: tracked.read(store, key.run), [], say),
        recognised=next(
            (list(entry["recognised"]) for entry in reversed(entries) if entry.get("recognised")), []
        ),
    )


def _whole(read: Callable[[], A], instead: A, say: Say) -> A:
    try:
        return read()
    except (DamagedError, NewerFormatError) as error:
        say(str(error))
        return instead


class _Own:
    """Passes on what is said of one run; its sweep's other runs are not what was asked for."""

    def __init__(self, key: RunKey, say: Say) -> None:
        self._run, self._say = key.run, say

    def __call__(self, line: str) -> None:
        if self._run in line:
            self._say(line)


def _chosen(store: Store, job: Job, row: Row, entries: Iterable[Record]) -> Record:
    """As its newest attempt that ended said."""
    record: Record = next((one["config"] for one in reversed([*entries]) if one.get("config")), {})
    if not record:
        return {}
    try:
        usual = defaults.at(defaults.history(store), job.command_of(row.index), row.started or 0.0)
    except (DamagedError, NewerFormatError):  # of no run: all of it is shown
        usual = {}
    return {name: value for name, value in record.items() if name not in usual or usual[name] != value}


def _metrics(fragments: Sequence[Fragment], state: RunState) -> dict[str, dict[str, float]]:
    """Its curves in short; the end knows what one used that was over before the first sample."""
    end = state.end or {}
    found = metrics.summary(metrics.chain(fragments, state.attempt)) or end.get("metrics") or {}
    return {**metrics.summary([Point(end.get("step") or 0, 0.0, end.get("use") or {})]), **found}


def _saved(one: KeptCheckpoint) -> CheckpointDetails:
    record = one.checkpoint.record
    files = record["files"]
    size = sum(row.get("size") or 0 for row in files)
    moment = record.get("at")
    return CheckpointDetails(
        one.place.name, len(files), size, one.checkpoint.finished, one.step, one.value, moment, one.stays
    )


def _outputs(store: Store, run: str, attempts: Iterable[int]) -> list[Record]:
    """Outputs of the newest of these attempts that left any."""
    for attempt in attempts:
        try:
            return outputs.read(store, layout.output_commit(run, attempt))
        except NotFound:
            continue
    return []
