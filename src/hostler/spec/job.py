"""A job: everything a worker needs to carry out any run of one sweep, as frozen data.

It is what `sweeps/<sweep>/spec/<v>.json` holds. Plain dataclasses, standard library only: workers read
it on machines where nothing is installed. Text and files become a Job in `parse.py` and `argv.py`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, fields, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from hostler.errors import NewerFormatError
from hostler.frozen import dataclass
from hostler.spec import spans, style
from hostler.spec.names import slug
from hostler.spec.spans import Spans
from hostler.spec.style import Style

if TYPE_CHECKING:
    from hostler.spec.rounds import Round
    from hostler.spec.tracking import Tracking

FORMAT = 1
LARGER = 1.05  # times the memory of another GPU: two of one kind differ by less

_ENCODER = json.JSONEncoder(sort_keys=True, default=str)  # made once: ids are made by the thousand

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Resources:
    """Resources that a run takes. gpus may be a fraction (0.5: two runs share one)."""

    cpus: float | None = None
    gpus: float = 0.0
    gpu_memory: int | None = None  # bytes on its GPU; with gpus 0 it means a share of one GPU
    memory: int | None = None  # bytes of host memory; over it the run is killed
    nodes: int = 1  # workers that train one model together; what else is asked for is of each
    procs_per_node: int = 1
    min_nodes: int | None = None  # it may go on with as few, where not all come; None: with no fewer

    @property
    def fewest(self) -> int:
        return self.nodes if self.min_nodes is None else min(self.min_nodes, self.nodes)

    def larger_than(self, size: int) -> Resources:
        """Resources of a run that a GPU of so many bytes was too small for: a whole one with more. 0: as it
        is."""
        if not size:
            return self
        least = max(self.gpu_memory or 0, int(size * LARGER))
        return replace(self, gpus=max(1.0, self.gpus), gpu_memory=least)


@dataclass(frozen=True)
class Limits:
    """Seconds. None: no limit. `start` is the grace for the first metric or checkpoint."""

    time: float | None = None
    hang: float | None = None
    start: float = 1200.0
    failures: int = 5  # the same error this many times in a row stops the sweep


@dataclass(frozen=True)
class Checkpointing:
    every: float = 300.0
    keep: int = 2
    keep_every: float | None = None  # a commit this long after the last one kept for good is kept too


@dataclass(frozen=True)
class PythonEnv:
    """Which Python the command finds first on PATH; at most one of these is set, but for requirements beside
    one that exists (conda_env, venv, exe): then nothing is installed, and its versions are checked."""

    requirements: str | None = None  # path inside the code snapshot; installed by uv or pip, once per content
    conda: str | None = None  # path of an environment.yml inside the snapshot
    conda_env: str | None = None  # name of a conda environment that exists on the machine
    venv: str | None = None  # path of a virtual environment that exists on the machine
    exe: str | None = None  # path of an interpreter


@dataclass(frozen=True)
class DataItem:
    """An entry of `data:`, found by the run at $HOSTLER_DATA/<name>. Exactly one source is set."""

    name: str
    path: str | None = None  # an absolute path on the machine, used in place
    blob: str | None = None  # sha256 of an archive in the store under data/, unpacked once per machine
    url: str | None = None  # gs:// s3:// az:// https:// file://: fetched once per machine
    run: tuple[str, ...] = ()  # a command that prepares it, once per machine; with `out`
    out: str | None = None  # folder the command leaves, relative to its working directory
    at: str | None = None  # where it also lies, from the working folder on; see `names.place_of_data`


@dataclass(frozen=True)
class Source:
    """Where the code comes from: a snapshot in the store, or a git commit fetched on the machine."""

    snapshot: str | None = None  # sha256 of code/<sha256>
    git: str | None = None  # URL
    ref: str | None = None  # the commit it resolved to at submission
    token_secret: str | None = None  # name of the secret that holds the token
    commit: str | None = None  # of the working tree at submission, where it was a git checkout
    library: str | None = None  # sha256 of library/<sha256>.zip: the hostler that submitted it
    dirty: bool = False  # the working tree differed from the commit (the diff lies in the snapshot's record)
    function: str | None = None  # sha256 of the packed function in the snapshot, where it is in no file

    @property
    def mark(self) -> str:
        """Equal marks are equal code."""
        return self.snapshot or (f"{self.git}@{self.ref}" if self.git else "")


@dataclass(frozen=True)
class MetricSource:
    """How metrics are picked from the output of a script that does not import hostler."""

    json_lines: bool = True
    pattern: str | None = None  # a regular expression with named groups; a group `step` is the step
    tools: bool = True  # lines of common tools, where neither JSON lines nor the library bring points

    @property
    def recognises(self) -> bool:
        """Whether lines of common tools are looked at: a record of before has `tools` with `none`, too."""
        return self.tools and self.json_lines and not self.pattern


def by_pattern(pattern: str) -> MetricSource:
    """Metrics by this regular expression alone; ValueError if it has none, or is not one."""
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    if not set(groups) - {"step"}:
        raise ValueError(f"{pattern!r} has no group named like a metric (like loss=(?P<loss>[0-9.]+))")
    return MetricSource(json_lines=False, pattern=pattern)


@dataclass(frozen=True)
class Objective:
    """A metric that a search looks at, and whether more of it is better."""

    name: str
    goal: str = "max"
    of: str = "kept"  # which of its values counts: kept, best, last or mean:5; see ranking.py


@dataclass(frozen=True)
class Budget:
    """The bounds of a sweep as a whole. None: no bound."""

    runs: int | None = None
    hours: float | None = None  # from its first start on, by the store's clock
    cost: float | None = None


@dataclass(frozen=True)
class Notify:
    """Notices to send, and to whom. `to` are names of variables that hold addresses: those are secrets."""

    to: tuple[str, ...] = ()
    on: tuple[str, ...] = ("finished", "failed", "cap")
    quiet: str = ""  # "22:00-07:00", by the clock of the machine that would send
    limit: int = 10  # messages in an hour; what is over it goes along with the next


@dataclass(frozen=True)
class Together:
    """Which runs may share one process; `together.py` says which belong together."""

    limit: int = 1  # runs in one process, at most; 1: each has its own
    free: tuple[str, ...] = ()  # parameters in which those of one process may differ
    apart: tuple[str, ...] = ()  # keys of runs that go one by one all the same
    asked: bool = False  # a search that learns is asked for as many at a time


@dataclass(frozen=True)
class Job:
    """A sweep as submitted (a single run is a sweep of one)."""

    name: str  # the sweep's name: a safe key part
    command: tuple[str, ...]
    title: str = ""  # what the person called it, any text
    style: str = "flags"  # how parameters reach the command: flags | equals | hydra | json | env | none
    forms: Style = field(default_factory=Style)  # of `flags`: how its options are written
    resume: tuple[str, ...] = ()  # added from the second attempt on, if the checkpoint folder holds something
    resume_whole: bool = False  # `resume` is a whole command, in place of `command`
    resume_else: tuple[tuple[str, ...], ...] = ()  # used where `resume` does not fit, the first that does
    setup: tuple[str, ...] = ()
    python: PythonEnv = field(default_factory=PythonEnv)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    metric: str | None = None
    goal: str = "max"
    of: str = "kept"  # which value of the metric a run is ranked by; see ranking.py
    resources: Resources = field(default_factory=Resources)
    distributed: str = "torch"  # how several processes are told of each other: torch | tensorflow | jax
    limits: Limits = field(default_factory=Limits)
    checkpoint: Checkpointing = field(default_factory=Checkpointing)
    retries: int = 2
    retries_given: bool = (
        False  # a person wrote it: it is kept, but for errors that are certain to come again
    )
    data: tuple[DataItem, ...] = ()
    outputs: tuple[str, ...] = ()  # paths in the working folder that are kept, however large
    collect: bool = True  # files that its script makes or changes there are kept too, up to a limit
    metrics: MetricSource = field(default_factory=MetricSource)
    trackers: tuple[Tracking, ...] = ()
    tags: tuple[str, ...] = ()
    notify: Notify = field(default_factory=Notify)
    notes: str = ""
    by_hand: bool = False  # a script that a person started by itself: no worker takes its runs
    source: Source = field(default_factory=Source)
    cwd: str = ""  # working directory, relative to the snapshot's root
    priority: int = 0
    warm: bool | str = (
        True  # a script may be started from a parent that has imported what it imports; "strict"
    )
    runs: tuple[Params, ...] = ({},)  # parameters of run 0, 1, 2 … where there are no rounds; of a search
    # that learns, those of the journal's entries: they come after the rounds that it took the place of
    rounds: tuple[Round, ...] = ()  # of a sweep's file: runs are computed; an index is given out once
    dropped: Spans = field(default_factory=Spans)  # no longer in the file: not started unless they were
    method: str = ""  # of search; '' for what is no sweep file's
    search: Mapping[str, Any] = field(default_factory=dict)  # the space of a method that learns
    journal_from: int = 0  # entries of the journal before its own: those of searches in the trash
    seed: int = 0
    file: str = ""  # the sweep's file, from the project's root: no part of the code that a run is made by
    objectives: tuple[Objective, ...] = ()  # the first is `metric` with its `goal`
    prune: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    parallel: int | None = None  # runs at once, on all workers together
    auto: bool = False  # `parallel: auto`: as many as fit on each machine, by measure
    together: Together = field(default_factory=Together)  # which of its runs may share a process
    init: Mapping[str, str] = field(default_factory=dict)  # the run that all begin from; see inputs.py

    @property
    def called(self) -> str:
        """The name shown to people: their own words where its name was made of them alone, else the name."""
        return self.title if self.title and slug(self.title) == self.name else self.name

    @property
    def neighbours(self) -> bool:
        """Whether some of its data lies beside the working folder of a run."""
        return any((item.at or "").startswith("../") for item in self.data)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Secrets that its machines must have: its runs', and its code's."""
        token = self.source.token_secret
        return (*self.secrets, token) if token and token not in self.secrets else self.secrets

    @property
    def count(self) -> int:
        """How many indices were given out; those of dropped runs among them."""
        return self.planned + (len(self.runs) if self.search or not self.rounds else 0)

    @property
    def planned(self) -> int:
        """How many of them are computed from the rounds: the runs of a search come after."""
        return self._before[-1] if self.rounds else 0

    @property
    def searched_from(self) -> int:
        """The first index of its search: runs before that were another's, and are not compared with its."""
        return self.planned if self.search else 0

    def params(self, index: int) -> Params:
        if index >= self.planned:
            return self.runs[index - self.planned]
        one, n = self._place(index)
        return one.params(n)

    def command_of(self, index: int) -> tuple[str, ...]:
        return self._place(index)[0].command if index < self.planned else self.command

    def repeat(self, index: int) -> int:
        """Which of the runs with these parameters it is: 0, 1 …"""
        if index >= self.planned:
            return 0
        one, n = self._place(index)
        return one.repeat(n)

    def section(self, index: int) -> int:
        """The section of the file that a run belongs to, from 1; 0 where there are none."""
        if index >= self.planned:
            return 0
        one, n = self._place(index)
        return one.section(n)

    def round(self, index: int) -> int:
        """The submission of the sweep's file that brought the run, from 1; 0 without rounds."""
        return bisect_right(self._before, index) if self.rounds else 0

    def outside(self, section: int) -> Spans:
        """Runs that a worker of this section leaves alone: those of others, and dropped ones."""
        return spans.of(i for i in range(self.count) if i in self.dropped or self.section(i) != section)

    def run_id(self, index: int) -> str:
        """Index first, so that name order is index order; a hash last, so that an edit is another run."""
        return f"{index:07d}-{self.name}-{self.mark(index)[:6]}"

    def mark(self, index: int) -> str:
        """The identity of a run within a sweep: parameters, command, and which repeat it is."""
        return mark(self.name, self.command_of(index), self.params(index), self.repeat(index))

    @cached_property
    def _before(self) -> list[int]:
        """How many runs there are before each round, and in all."""
        return [0, *accumulate(one.count for one in self.rounds)]

    def _place(self, index: int) -> tuple[Round, int]:
        at = bisect_right(self._before, index) - 1
        if not 0 <= at < len(self.rounds):
            raise IndexError(f"{self.name} has no run {index}")
        return self.rounds[at], index - self._before[at]

    @property
    def chooses(self) -> bool:
        """Whether its search may still add runs."""
        return bool(self.search) and (self.budget.runs is None or len(self.runs) < self.budget.runs)

    @property
    def unchosen(self) -> int:
        """Runs that its search may still add, as far as its budget says."""
        return max(0, (self.budget.runs or 0) - len(self.runs)) if self.search else 0

    @property
    def looked_at(self) -> tuple[Objective, ...]:
        """The metrics its runs are judged by, the most important first."""
        return self.objectives or ((Objective(self.metric, self.goal, self.of),) if self.metric else ())

    @property
    def ranked_by(self) -> Objective | None:
        """The metric that its runs are ranked by, with the rule; None if it has none."""
        return Objective(self.metric, self.goal, self.of) if self.metric else None

    def indices(self) -> Iterator[int]:
        """Indices of the runs that are in the file, or in what was submitted."""
        return (index for index in range(self.count) if index not in self.dropped)


def mark(name: str, command: tuple[str, ...], params: Params, repeat: int = 0) -> str:
    """The hash of a run's identity in the sweep of this name."""
    import hashlib  # with OpenSSL; most looks at a store hash nothing

    what = [name, command, dict(params), *([repeat] if repeat else [])]
    return hashlib.sha256(_ENCODER.encode(what).encode()).hexdigest()


@lru_cache(maxsize=16)
def _source_facts(source: Source) -> dict[str, Any]:
    facts = asdict(source)
    return facts if source.function else {k: v for k, v in facts.items() if k != "function"}


def source_fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a record holds of a source, without those of a newer hostler or a stranger."""
    known = Source.__dataclass_fields__
    return {k: v for k, v in facts.items() if k in known and (v is None or isinstance(v, (str, bool)))}


def source_facts(source: Source) -> dict[str, Any]:
    """Where the code is from, as a record; as older versions read it, unless a function is packed in it."""
    return dict(_source_facts(source))


def to_json(job: Job) -> dict[str, Any]:
    runs = () if job.search else job.runs  # those of a search that learns are in its journal
    plain = asdict(replace(job, rounds=(), dropped=Spans(), runs=runs, forms=Style()))
    plain["forms"] = style.to_json(job.forms)
    plain["rounds"] = [one.to_json() for one in job.rounds]
    return {"format": FORMAT, **plain, "dropped": spans.to_json(job.dropped)}


def from_json(record: Mapping[str, Any]) -> Job:
    """The job a record holds. Unknown keys of the same format are left alone: a later minor version's."""
    if record.get("format", 0) > FORMAT:
        raise NewerFormatError(
            f"this sweep was written in format {record['format']}, this hostler reads up to {FORMAT}",
            hint="upgrade hostler: pip install -U hostler",
        )
    return Job(**{f.name: _value(f.name, record[f.name]) for f in fields(Job) if f.name in record})


_NESTED: dict[str, type] = {
    "python": PythonEnv,
    "resources": Resources,
    "limits": Limits,
    "checkpoint": Checkpointing,
    "metrics": MetricSource,
    "source": Source,
    "budget": Budget,
    "notify": Notify,
    "together": Together,
}


# Fields that are shown, joined and compared as text wherever they are read.
_TEXTS = ("name", "title", "style", "metric", "goal", "of", "distributed", "notes", "cwd", "method", "file")


def _value(name: str, value: Any) -> Any:
    if name in _TEXTS and not isinstance(value, (str, type(None))):
        raise TypeError(f"{name}: {value!r}")
    if name in _NESTED:
        return _plain(_NESTED[name], value)
    if name == "rounds" and value != []:
        from hostler.spec import rounds  # of a sweep's file alone

        return tuple(rounds.from_json(one) for one in value)
    if name == "dropped":
        return spans.from_json(value)
    if name == "forms":
        return style.from_json(value)
    if name == "trackers" and value != []:
        from hostler.spec import tracking  # most runs are shown in no other tool

        return tracking.from_json(value)
    if name == "objectives":
        return tuple(_objective(one) for one in value)
    if name == "resume_else":
        return tuple(tuple(words) for words in value)
    if name == "data":
        return tuple(_plain(DataItem, {**item, "run": tuple(item.get("run", ()))}) for item in value)
    return tuple(value) if isinstance(value, list) else value


def _objective(value: Mapping[str, Any]) -> Objective:
    if not all(isinstance(value.get(name, ""), str) for name in ("name", "goal", "of")):
        raise TypeError(f"objectives: {value!r}")
    return Objective(**{k: value[k] for k in ("name", "goal", "of") if k in value})


def _plain(kind: type, value: Mapping[str, Any]) -> Any:
    known = {f.name for f in fields(kind)}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items() if k in known})
