"""Workers as subjobs of PBS job arrays: qsub starts them, qstat lists them, qsig and qdel end them.

Written for OpenPBS and PBS Professional, whose qstat answers in JSON; Torque's does not. An array has at
least two subjobs there, so a single task is a job of its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from hostler.backends.arrays import Array
from hostler.backends.base import Launch
from hostler.backends.scheduler import (
    LEAVES,
    RUNS,
    WAITS,
    Run,
    SchedulerBackend,
    Task,
    asked,
    gpus,
    name_of,
    requeues,
)
from hostler.errors import MachineError
from hostler.spec.job import Resources
from hostler.spec.project import Fleet

STATES = {
    "Q": (WAITS, "for free machines"),
    "H": (WAITS, "held: qrls lets it go; an array that follows another waits for that one"),
    "W": (WAITS, "its start time has not come"),
    "T": (WAITS, "is being moved to another server"),
    "R": (RUNS, "runs"),
    "S": (RUNS, "suspended: its run is taken over when its heartbeat stands still"),
    "U": (RUNS, "suspended by a user of its machine: its run is taken over meanwhile"),
    "E": (LEAVES, "is ending"),
}
OVER = ("F", "X", "M", "B")  # ended, or an array as a whole, whose subjobs are listed


class Pbs:
    name = "pbs"
    submits = "qsub"
    hint = "pbsnodes -a shows the machines, qstat -Q the queues"
    task = "${PBS_JOBID%%[.[]*}_${PBS_ARRAY_INDEX:-1}"
    nothing = r"unknown job id|has finished"
    refusals: Sequence[tuple[str, str]] = (
        (r"unknown queue", "qstat -Q lists them; set `queue`"),
        (
            r"unknown resource|invalid.*select",
            "lower `resources`, or say it in `options` as the site wants it",
        ),
        (r"exceed|violates.*limit", "qstat -Q -f shows the limits; lower `time`, `resources` or `workers`"),
        (r"project|account", "set `project`; the site says which"),
        (r"cannot connect|connection refused|no response", "PBS's server does not answer: try again later"),
    )

    def submit(self, fleet: Fleet, launch: Launch, array: Array) -> list[str]:
        own = fleet.options
        words = ["qsub", "-V", "-S", "/bin/bash", "-N", name_of(fleet, launch)]
        words += ["-J", f"1-{array.tasks}%{array.at_once}"] if array.tasks > 1 else []
        words += ["-r", "y" if requeues(fleet) else "n"]
        words += ["-j", "oe", "-o", "/dev/null"] if launch.logs else []
        words += ["-q", own["queue"]] if own.get("queue") else []
        words += ["-P", own["project"]] if own.get("project") else []
        words += ["-l", f"walltime={math.ceil(own['time'])}"] if own.get("time") else []
        return [*words, "-l", _select(asked(fleet, launch)), *own.get("options", ())]

    def after(self, job: str) -> list[str]:
        return ["-W", f"depend=afterany:{job}"]

    def job_id(self, out: str) -> str | None:
        """`71[].server` or `71.server`, after whatever a site's hook has to say."""
        ids = re.findall(r"^(\d+(?:\[\])?(?:\.\S+)?)\s*$", out, re.MULTILINE)
        return ids[-1] if ids else None

    def queue(self, run: Run, user: str) -> list[Task]:
        """qstat tells whole names of named jobs only: qselect says which they are."""
        ids = run(["qselect", "-u", user]).out.split()
        return parse(run(["qstat", "-t", "-f", "-F", "json", *ids]).out) if ids else []

    def ending(self, task: Task, *, now: bool) -> list[str]:
        """qdel itself sends SIGTERM, and SIGKILL soon after; qsig leaves all the time it takes to save."""
        return ["qdel", task.id] if now or task.state == WAITS else ["qsig", "-s", "SIGTERM", task.id]


def parse(text: str) -> list[Task]:
    """Rows of `qstat -t -f -F json`."""
    try:
        answer = json.loads(text[text.find("{") :], strict=False)
    except (ValueError, RecursionError):
        answer = None
    jobs: Any = (answer.get("Jobs") or {}) if isinstance(answer, dict) else None
    if not isinstance(jobs, dict) or not all(map(_is_job, jobs.values())):
        raise MachineError(
            "qstat's answer cannot be read as JSON", "PBS Professional or OpenPBS is needed: qstat --version"
        )
    return [_task(name, job) for name, job in jobs.items() if job.get("job_state") not in OVER]


def _is_job(job: object) -> bool:
    return isinstance(job, dict) and isinstance(job.get("job_state"), (str, type(None)))


def _task(name: str, job: dict[str, Any]) -> Task:
    state, words = STATES.get(str(job.get("job_state")), (RUNS, str(job.get("job_state"))))
    reason = str(job.get("comment") or "") if state == WAITS else ""
    host = str(job.get("exec_host") or "").partition("/")[0]
    whole = re.sub(r"\[\d+\]", "[]", name)
    return Task(name, whole, str(job.get("Job_Name", "")), state, reason or words, host)


def _select(wanted: Resources) -> str:
    parts = [f"select=1:ncpus={math.ceil(wanted.cpus or 1)}"]
    parts += [f"mem={math.ceil(wanted.memory / 2**20)}mb"] if wanted.memory else []
    parts += [f"ngpus={count}"] if (count := gpus(wanted)) else []
    return ":".join(parts)


def open_backend(fleet: Fleet | None = None) -> SchedulerBackend:
    return SchedulerBackend(Pbs())
