"""Workers as tasks of a job array: sbatch starts them, squeue lists them, scancel ends them.

Nothing is remembered here: which jobs are a fleet's is written on the jobs themselves (their comment). The
accounting database is asked by `fates.py` alone: sites without one are served the same.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import field

from hostler import env
from hostler.backends import arrays as job_arrays
from hostler.backends.arrays import Array, mark, with_vault
from hostler.backends.base import (
    Capabilities,
    Launch,
    MachineInfo,
    PartlyStarted,
    Plan,
    Question,
    WorkerInfo,
)
from hostler.backends.privatefile import PrivateContent
from hostler.backends.slurm import batch, queue
from hostler.backends.slurm.queue import Listing
from hostler.backends.slurm.reasons import in_words
from hostler.backends.slurm.refusals import AGAIN, FEWER, SMALLER, Refusal, refusal
from hostler.backends.slurm.states import GONE, WAITING, meaning
from hostler.backends.terminal import Here, Ran, Terminal
from hostler.errors import MachineError, UsageError
from hostler.frozen import dataclass
from hostler.spec.project import Fleet

CAPABILITIES = Capabilities(
    restarts=True, gangs=True, shares_disk=True, shared=True, tells=True, scripts=True
)
PREVIOUS = "PREVIOUS"  # in a plan: the id of the job before
_AFTER = ("--dependency=afterany:", "")
TRIES = 6  # of one sbatch that the controller did not answer
ARGUMENTS = 4000  # of one scancel


@dataclasses.dataclass
class SlurmBackend:
    terminal: Terminal = field(default_factory=Here)
    pause: Callable[[float], None] = time.sleep
    capabilities: Capabilities = CAPABILITIES
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._queue = Listing(self.terminal, self.clock)

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        _check_script(fleet, launch)
        if launch.secrets or launch.keys:
            launch = with_vault(fleet, launch, str(env.cache_dir()))
        return _plan(fleet, launch, job_arrays.arrays(fleet, launch.runs))

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        launch = plan.launch or Launch("")
        if launch.logs:
            self.terminal.make(launch.logs)
        self._queue.forget()
        self._keep(plan.fleet, launch)
        try:
            return self._submit(plan.fleet, launch, job_arrays.arrays(plan.fleet, launch.runs))
        except PartlyStarted:
            raise
        except MachineError:
            if launch.vault:
                self._forget_secrets(plan.fleet)
            raise

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return [_info(fleet, row) for row in self._rows(fleet)]

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        rows = self._rows(fleet)
        waiting = [row for row in rows if now or meaning(row.state).worker == WAITING]
        queue_rows = [row for row in rows if row not in waiting]
        self._queue.forget()
        self._cancel([row.array for row in waiting if row.array], ["--state=PENDING"])
        self._cancel([row.id for row in waiting if not row.array])
        # to the worker alone: its runs are asked by it, on the stop road
        self._cancel(
            [row.id for row in queue_rows],
            () if fleet.options.get("script") else ("--batch", "--signal=TERM"),
        )
        if not queue_rows:
            self.terminal.forget(mark(fleet))
        return [_info(fleet, row) for row in rows]

    def logs(self, worker: WorkerInfo) -> bytes:
        found = worker.log or self._log_of(worker.id)
        if not found:
            return b""
        pattern = ["sh", "-c", 'for f in "$1"*.log; do [ -f "$f" ] && cat -- "$f"; done', "sh", found]
        words = ["cat", "--", found] if found.endswith(".log") else pattern
        return self.terminal.run(words).out.encode()

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """Nothing, as Slurm chooses the machines; a machine without Slurm is named with its problem."""
        if not self.terminal.has("sbatch"):
            return [MachineInfo(self.terminal.place, *absent("sbatch", self.terminal.place))]
        return ()

    def _keep(self, fleet: Fleet, launch: Launch) -> None:
        """Keep the secrets where its workers find them, and remove those of launches that are over."""
        kept = PrivateContent(launch.secrets, launch.keys)
        if not kept:
            return
        self._forget_secrets(fleet)
        self.terminal.keep(launch.vault.rpartition("/")[2], kept)

    def _forget_secrets(self, fleet: Fleet) -> None:
        if not self._rows(fleet):
            self.terminal.forget(mark(fleet))

    def _submit(self, fleet: Fleet, launch: Launch, arrays: tuple[Array, ...]) -> Sequence[WorkerInfo]:
        plan, started = _plan(fleet, launch, arrays), list[WorkerInfo]()
        for command, array in zip(plan.commands, plan.arrays, strict=True):
            words = [
                started[-1].id.join(_AFTER) if word == PREVIOUS.join(_AFTER) else word for word in command
            ]
            answer = self._sbatch(words, plan.script, launch)
            if isinstance(answer, str):
                log = f"{launch.logs}/{answer}_" if launch.logs else ""
                started.append(WorkerInfo(answer, fleet.name, True, "submitted", array.tasks, log))
                continue
            instead = self._instead(fleet, launch, arrays, answer) if not started else ()
            if not instead:
                raise self._refused(answer, started)
            return self._submit(fleet, launch, instead)
        return started

    def _refused(self, answer: Refusal, started: Sequence[WorkerInfo]) -> MachineError:
        """Error for a refusal; it names the jobs queued before, and how they are cancelled."""
        if not started:
            return MachineError(answer.message, answer.hint)
        ids = [worker_info.id for worker_info in started]
        return PartlyStarted(
            f"{answer.message}; queued before that: {', '.join(ids)}",
            f"{answer.hint}; scancel {' '.join(ids)} takes back what is queued",
            tuple(started),
            lambda: self._take_back(ids),
        )

    def _instead(
        self, fleet: Fleet, launch: Launch, arrays: tuple[Array, ...], answer: Refusal
    ) -> tuple[Array, ...]:
        """Arrays that the site may take instead; nothing if there are none."""
        if answer.what == FEWER:
            return job_arrays.fewer(arrays)
        largest = max(array.tasks for array in arrays)
        limit = self._array_limit() if answer.what == SMALLER else 0
        return job_arrays.arrays(fleet, launch.runs, limit) if 0 < limit < largest else ()

    def _array_limit(self) -> int:
        """How many tasks an array may have here: indices stay under MaxArraySize."""
        match = re.search(r"^MaxArraySize\s*=\s*(\d+)", self._run(["scontrol", "show", "config"]).out, re.M)
        return int(match[1]) if match else 0

    def _sbatch(self, words: Sequence[str], script: str, launch: Launch) -> str | Refusal:
        """The job's id, or why not; asks again while the controller does not answer. What is in the
        environment of sbatch Slurm writes down, with the job: no secret is."""
        for number in reversed(range(TRIES)):
            ran = self.terminal.run(words, script, launch.plain, without=launch.secrets)
            if ran.code == 0:
                return _job_id(ran.out)
            check_there(ran, words[0], self.terminal.place)
            answer = refusal(ran.err or ran.out)
            if answer.what != AGAIN or not number:
                return answer
            self.pause(2.0 ** (TRIES - number))
        raise AssertionError("the last try returns")

    def _rows(self, fleet: Fleet) -> Sequence[queue.QueueRow]:
        """The fleet's jobs."""
        listed = queue.parse(self._checked(self._queue.now(), "squeue").out)
        rows = [row for row in listed if batch.sweeps_of(fleet, row.comment) is not None]
        return [row for row in rows if meaning(row.state).worker != GONE]

    def _take_back(self, ids: Sequence[str]) -> None:
        self._run(["scancel", *ids])
        self._queue.forget()

    def _cancel(self, known: Sequence[str], how: Sequence[str] = ()) -> None:
        for first in range(0, len(known), ARGUMENTS):
            self._run(["scancel", *how, *known[first : first + ARGUMENTS]], may_fail=True)

    def _log_of(self, job: str) -> str:
        shown = self.terminal.run(["scontrol", "show", "job", job]).out
        match = re.search(r"^\s*StdOut=(.*)$", shown, re.M)
        return match[1] if match else ""

    def _run(self, words: Sequence[str], *, may_fail: bool = False) -> Ran:
        ran = self.terminal.run(words)
        return ran if may_fail and ran.code != 127 else self._checked(ran, words[0])

    def _checked(self, ran: Ran, program: str) -> Ran:
        check_there(ran, program, self.terminal.place)
        if ran.code:
            text = (ran.err or ran.out).strip()[-300:]
            raise MachineError(f"{program} failed: {text}", "sinfo shows the cluster")
        return ran


def open_backend(fleet: Fleet | None = None) -> SlurmBackend:
    """Commands are typed on the login node that the fleet names, or here."""
    if fleet is not None and fleet.options.get("login"):
        from hostler.backends.slurm.login import LoginBackend

        return LoginBackend(fleet)
    return SlurmBackend()


@dataclass(frozen=True)
class SlurmPlan(Plan):
    arrays: tuple[Array, ...] = ()


def _plan(fleet: Fleet, launch: Launch, arrays: tuple[Array, ...]) -> SlurmPlan:
    arrays = arrays * int(fleet.options.get("chain") or 1)
    text = batch.script(fleet, launch, arrays[0])
    return SlurmPlan(
        fleet,
        tuple(_command(fleet, launch, array, first=n == 0) for n, array in enumerate(arrays)),
        _notes(arrays),
        script=text,
        workers=arrays[0].at_once,
        launch=launch,
        arrays=arrays,
    )


def _command(fleet: Fleet, launch: Launch, array: Array, *, first: bool) -> tuple[str, ...]:
    words = ["sbatch", *batch.options(fleet, launch, array)]
    words += [] if first else [PREVIOUS.join(_AFTER)]
    if launch.script:  # a person's own: the worker's command is what it gets
        words += ["/dev/stdin", *batch.worker(fleet, launch, array)]
    return tuple(words)


def _notes(arrays: tuple[Array, ...]) -> tuple[str, ...]:
    if len(arrays) == 1:
        return ()
    return (f"{len(arrays)} arrays, one after the other; {PREVIOUS} is the id of the one before",)


def _check_script(fleet: Fleet, launch: Launch) -> None:
    if launch.script and not batch.runs_worker(launch.script):
        raise UsageError(
            f"{fleet.options.get('script')} does not run its arguments, and no program with $1",
            hint='the worker\'s command comes as its arguments: add a line "$@" (or srun "$@")',
        )


def check_there(ran: Ran, program: str, place: str) -> None:
    if ran.code == 127:
        raise MachineError(*absent(program, place))


def absent(program: str, place: str) -> tuple[str, str]:
    """That it is not there, and what to do."""
    if place == "here":
        return (
            f"{program} was not found here",
            "run this on the cluster's login node, or set `login: me@host`",
        )
    hint = f"check that it is the cluster's login node: `ssh {place} {program} --version`"
    return f"{program} was not found on {place}", hint


def _job_id(out: str) -> str:
    """`--parsable` prints `id` or `id;cluster`, after whatever a site's wrapper has to say."""
    lines = [line.strip().split(";")[0] for line in out.splitlines()]
    ids = [line for line in lines if line.isdigit()]
    if not ids:
        raise MachineError(
            f"sbatch did not say the job's id: {out.strip()[-200:]!r}",
            "check whether sbatch is a wrapper here",
        )
    return ids[-1]


def _info(fleet: Fleet, row: queue.QueueRow) -> WorkerInfo:
    state = meaning(row.state)
    return WorkerInfo(
        id=row.id,
        host=row.node,
        alive=True,
        detail=f"waits: {in_words(row.reason)}" if row.state == "PENDING" else state.words,
        count=row.tasks,
        launch=row.id.partition("_")[0],
        sweeps=batch.sweeps_of(fleet, row.comment) or (),
    )
