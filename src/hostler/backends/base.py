"""The seam to every backend: it only starts and stops workers.

`plan` is pure and printable: `--dry-run` shows exactly it. Callers ask for capabilities, never which
backend it is. A backend gets data (the store's URL is data) and returns data.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from hostler.errors import CloudError, CloudUnavailable, HostlerError, MachineError
from hostler.frozen import dataclass
from hostler.spec.job import Resources

if TYPE_CHECKING:
    from hostler.remote.target import SshTarget
    from hostler.spec.project import Fleet

OUTGROWN = "outgrown"  # key of what is known of a fleet: bytes of a GPU that is too small for its sweeps
PACES = "paces"  # the same: what scouts measured on its machines, as `MachinePaces`
KEYS = ("AWS_", "GOOGLE_", "AZURE_")  # how variables begin that open a bucket


@dataclass(frozen=True)
class Capabilities:
    restarts: bool  # the engine brings a lost worker back
    gangs: bool = False  # each worker that is asked for comes with all nodes of a run
    billed: bool = False
    shares_disk: bool = False  # sees folders of the submitter's machine
    makes_machines: bool = False  # its machines come with a launch, and go with it
    shared: bool = False  # others wait for its machines: a worker with nothing to do leaves
    keeps_secrets: bool = True  # it has a way of its own to tell workers what others must not read
    tells: bool = False  # its engine says what workers wait for
    scripts: bool = False  # its jobs may be a person's own batch script
    by_ssh: bool = True  # a person gets onto its machines by ssh
    grows: bool = False  # its workers may ask for others of their launch
    lasts: float | None = None  # seconds after which a launch goes, where nobody gives it a deadline
    longest: float | None = None  # seconds that its engine lets a machine be there


@dataclass(frozen=True)
class MachinePaces:
    """Seconds that machines take for the same work, as scouts measured them."""

    work: str  # in words: a run, 1000 steps
    seconds: Mapping[str, float]  # by the short name of a machine


@dataclass(frozen=True)
class Launch:
    """Purpose of a launch's workers: the store, the sweeps, the limits they work under."""

    store: str
    sweeps: tuple[str, ...] = ()
    python: str = "python3"
    cache: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # a bucket's keys are among them
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # for runs alone
    vault: str = ""  # where workers find these, if their backend has no place of its own for them
    folders: Mapping[str, str] = field(default_factory=dict)  # host → the store, where it has it as a folder
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # host → files it needs besides
    machines: Mapping[str, MachineInfo] = field(default_factory=dict)  # those that answered, by host
    skip: frozenset[str] = frozenset()  # hosts that have their workers already
    runs: int = 0  # how many are open; 0: not known
    resources: Resources = field(default_factory=Resources)  # what one run takes
    logs: str = ""  # a folder for what the workers print; relative where their machines are elsewhere
    library: str = ""  # what a worker's PYTHONPATH must be; '' where hostler is installed
    script: str = ""  # a person's own batch script, as it is
    generation: str = ""  # fleet/number of this launch; '' where nobody counts what it costs
    deadline: float | None = None  # when all of it must be gone: seconds since 1970, by the store's clock
    at: float = 0.0  # when it was agreed on, by the same clock
    parcels: tuple[tuple[str, str], ...] = ()  # (key in the store, its hash): what new machines unpack
    ssh_key: str = ""  # the public key by which a person gets onto new machines

    @property
    def keys(self) -> dict[str, str]:
        """Variables of the launch that open a bucket."""
        return {name: value for name, value in self.variables.items() if name.startswith(KEYS)}

    @property
    def plain(self) -> dict[str, str]:
        """Variables of the launch that everybody may see."""
        return {name: value for name, value in self.variables.items() if not name.startswith(KEYS)}

    @property
    def terms(self) -> list[str]:
        """Options of a worker that name its launch."""
        words = ["--fleet", self.generation] if self.generation else []
        return words + (["--deadline", f"{self.deadline:.1f}"] if self.deadline is not None else [])


@dataclass(frozen=True)
class Plan:
    """Commands that will be started, word for word."""

    fleet: Fleet
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    script: str = ""  # what the commands read
    workers: int = 0  # how many will run at a time
    launch: Launch | None = None
    warnings: tuple[str, ...] = ()  # what to know before it costs money

    @property
    def text(self) -> str:
        lines = [*(f"# {note}" for note in self.notes), *(shlex.join(c) for c in self.commands)]
        return "\n".join([*lines, *(["", self.script] if self.script else [])])


@dataclass(frozen=True)
class WorkerInfo:
    """A worker; or a machine that could not be asked: not alive, and `detail` says why."""

    id: str
    host: str
    alive: bool
    detail: str = ""  # for people
    count: int = 1  # workers it stands for: those of an array that still wait are one
    log: str = ""  # where what it prints is kept, if that is known
    launch: str = ""  # the id that `start` gave to what it is a part of, if that is another
    sweeps: tuple[str, ...] = ()  # the only ones it takes runs of, if that is known


class PartlyStarted(MachineError):
    """Some were started before one was refused; `undo` ends those."""

    def __init__(
        self, message: str, hint: str, started: tuple[WorkerInfo, ...], undo: Callable[[], None]
    ) -> None:
        super().__init__(message, hint)
        self.started, self.undo = started, undo


class Undone(CloudError):
    """A launch came to nothing, and is taken down again; its machines were there for `seconds` in all."""

    def __init__(self, message: str, hint: str, *, seconds: float, later: bool) -> None:
        super().__init__(message, hint)
        self.seconds = seconds
        self.exit_code = (CloudUnavailable if later else CloudError).exit_code


@dataclass(frozen=True)
class Question:
    """Questions to a machine besides its own facts."""

    path: str = ""  # does it see this file?
    store: str = ""  # can it write to this store?
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class MachineInfo:
    """Answer of a machine; `problem` if it did not answer."""

    host: str
    problem: str = ""
    hint: str = ""
    python: str = ""
    platform: tuple[str, ...] = ()  # system, processor, C library and its version
    cpus: int = 0
    gpus: tuple[str, ...] = ()  # their names
    sees: bool = False
    unreached: str = ""  # why it cannot write to the store
    home: str = ""
    exe: str = ""  # its Python
    library: str = ""  # the folder where hostler lies there
    cache: str = ""


@dataclass(frozen=True)
class Thing:
    """Something that a launch has made in a cloud, and that may cost."""

    kind: str
    name: str
    path: str
    project: str  # hostler's, as far as the thing says it
    fleet: str
    store: str  # the store it works for, in a few letters
    generation: str  # of its launch; '' for a machine for hand work
    status: str = ""
    where: str = ""
    works: bool = False  # it is a machine, or makes some
    ours: bool = True  # it works for the store that was asked for

    @property
    def by_hand(self) -> bool:
        """It is a machine for hand work."""
        return self.works and not self.generation

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" in {self.where}" if self.where else "")


@dataclass(frozen=True)
class Address:
    """How a person gets onto a machine."""

    name: str  # the machine's
    host: str
    user: str
    host_keys: tuple[str, ...]  # as the machine itself told them to its platform
    port: int | None = None
    command: tuple[str, ...] = ()  # where it is entered by a program of its platform, and not by ssh


class Host(Protocol):
    """The machine a worker runs on, as its platform sees it. Standard library alone.

    A host that gets no answer from its platform leaves undone what it was asked for: the run is safe.
    """

    name: str  # of its platform, for messages only
    comes_with_launch: bool  # it was made for one launch, and is released with it
    again: int  # exit code by which its platform starts this place again, after `give_back`; 0: needs none

    def place(self) -> tuple[str, int]:
        """Name of this place on its platform, and a number that grows with each worker that has it: a task of
        a queue, a pod's index, a VM's name. Only where the platform starts the next one when the one before
        is gone; else ("", 0)."""

    def watch(self, on_notice: Callable[[], None]) -> None:
        """Have `on_notice` called once, when the platform announces that it will take this machine away."""

    def seconds_left(self) -> float | None:
        """Time until the platform ends this worker; None if it has no limit."""

    def show(self, run: str) -> None:
        """Display the current run where the platform's users look."""

    def give_back(self) -> bool | None:
        """Return this place to the platform's queue, so that a successor starts. False if the queue refuses;
        None if there is none."""

    def on_nodes(self, command: Sequence[str], nodes: int) -> Sequence[str]:
        """Command that starts this one on each node of an allocation. Pure."""

    def born(self) -> tuple[str, float]:
        """Number and age of this machine in seconds, where it costs from its first second; else ("", 0.0)."""

    def report(self, state: str) -> None:
        """Tell whoever watches the launch."""

    def job(self) -> str:
        """Name by which a host of this platform can ask later how this worker ended; '' if it cannot."""

    def fate(self, job: str) -> str:
        """End of the worker of a job that died hard, in one word: memory, disk-full, evicted, preempted,
        timeout, cancelled, node-fail, which the platform's own words may follow after a colon; '' where it
        does not tell."""

    def leave(self) -> None:
        """Release this machine alone."""

    def grow(self, workers: int, most: int) -> int | None:
        """Have at least so many workers in this launch, at most `most`; the number that it has then, those on
        their way too. None where a worker cannot ask its platform for others."""

    def enlarge(self, size: int, hourly: float, *, instead: bool = False) -> str:
        """Have a machine in this launch whose GPU has more than so many bytes, where an hour of all costs no
        more than `hourly` then. Its type; '' where a worker cannot ask for one. `instead`: of this machine,
        which leaves at once and is not counted."""

    def tear_down(self, settled: Callable[[], None]) -> None:
        """Release the whole launch, this machine last. Calls `settled` when only this machine is left."""

    def exit_code(self, error: HostlerError) -> int:
        """Exit code of a worker that could not begin; by it the platform restarts or retires this place."""


class Backend(Protocol):
    capabilities: Capabilities

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        """Plan of a launch, as `start` carries it out. Pure."""

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        """Start it; the workers go on when the caller is gone."""

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        """All workers of the fleet, in one call."""

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        """Ask them to save and leave, or end them now. Idempotent."""

    def logs(self, worker: WorkerInfo) -> bytes:
        """Output of the worker itself."""

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """Facts about the fleet's machines, asked all at once; none where they are not known yet."""


class ThisMachine(Backend, Protocol):
    """The backend whose workers run where it is asked."""

    def starting(self, store: str, sweep: str) -> bool:
        """Whether a worker that takes runs of the sweep was started just now, and may not have beaten yet."""


@runtime_checkable
class Named(Protocol):
    """A backend whose fleets name their machines."""

    def targets(self, fleet: Fleet) -> Sequence[SshTarget]:
        """The machines of a fleet, as ssh reaches them; each once. Pure."""


@runtime_checkable
class Timed(Protocol):
    """A cloud that remembers when machines came and went."""

    def lives(self, fleet: Fleet, number: int, now: float) -> Mapping[str, tuple[float, float]]:
        """Machine → from when to when it was there, of one launch; those that it remembers."""


@runtime_checkable
class Informed(Protocol):
    """A backend that may ask its platform before it chooses machines."""

    def informed(self, fleet: Fleet, buckets: Sequence[str]) -> Fleet:
        """The fleet with what the platform tells: quotas, and where these buckets are."""


@runtime_checkable
class Choosing(Protocol):
    """A backend whose fleets may leave the machine open."""

    def machines(self, fleet: Fleet) -> Mapping[str, Fleet]:
        """Short name of each machine that the fleet leaves open → the fleet with that one alone, the cheapest
        first; nothing where it leaves none open. Pure."""


@runtime_checkable
class Cloud(Backend, Protocol):
    """A backend whose machines come with a launch (`makes_machines`): what is left of them can be listed."""

    say: Callable[[str], None]  # to whoever waits for the machines

    def completed(self, fleet: Fleet) -> Fleet:
        """The fleet with what is chosen where it says nothing. Pure."""

    def likely(self, fleet: Fleet) -> MachineInfo:
        """Expected facts about the fleet's machines, as far as the fleet tells. Pure."""

    def remains(self, fleet: Fleet, *, everywhere: bool = False) -> Sequence[Thing]:
        """All that there is of a fleet, or of every fleet of its project, other stores' too."""

    def remove(self, fleet: Fleet, found: Sequence[Thing]) -> None:
        """Take these away."""

    def keep(self, fleet: Fleet, launch: Launch, idle: float) -> WorkerInfo:
        """Start a machine for hand work, which goes when it has been idle for so many seconds."""

    def address(self, fleet: Fleet, machine: str) -> Address:
        """How a person gets onto one of its machines."""


class Vault(Protocol):
    """A place for the secrets of launches that only their workers read. Each launch has its own."""

    def place(self, launch: str, names: Sequence[str]) -> str:
        """Where workers will find those of a launch, as `hostler worker --secrets` takes it. Pure."""

    def put(self, launch: str, values: Mapping[str, str], until: float) -> None:
        """Put them there; at this time, in seconds since 1970, they may vanish by themselves."""

    def remove(self, launch: str, names: Sequence[str]) -> None:
        """Nothing of this launch is left in it. Idempotent."""


@runtime_checkable
class Vaulted(Protocol):
    """A cloud that may have a vault."""

    def vault(self, fleet: Fleet) -> Vault | None:
        """The fleet's; None if it was given none, and the store must do."""


@runtime_checkable
class Permitted(Protocol):
    """A cloud whose rights can be written down as it takes them."""

    def role(self, fleet: Fleet, who: str) -> str:
        """Rights that a person needs, as text for an administrator. Pure."""


@runtime_checkable
class Hosted(Protocol):
    """A cloud whose machines stay when the fleet is gone."""

    def standing(self, fleet: Fleet) -> Sequence[str]:
        """Lines on machines that what was removed was on, and that nobody uses now."""
