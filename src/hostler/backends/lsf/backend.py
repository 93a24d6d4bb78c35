"""Workers as elements of LSF job arrays: bsub starts them, bjobs lists them, bkill ends them.

`-r` starts an element again whose machine failed, `-Q` one that ended with code 99.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from hostler.backends.arrays import Array
from hostler.backends.base import Launch
from hostler.backends.scheduler import (
    AGAIN,
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
from hostler.spec.project import Fleet

SEPARATOR = "^"  # in no name of ours; the reason, which may hold anything, is the last field
FIELDS = ("jobid", "jobindex", "stat", "first_host", "job_name", "pend_reason")
STATES = {
    "PEND": (WAITS, "for free machines"),
    "PSUSP": (WAITS, "held: bresume lets it go"),
    "WAIT": (WAITS, "in a chunk of jobs that waits"),
    "PROV": (WAITS, "its machine is being made ready"),
    "RUN": (RUNS, "runs"),
    "USUSP": (RUNS, "suspended: its run is taken over when its heartbeat stands still"),
    "SSUSP": (RUNS, "suspended by LSF: its run is taken over meanwhile"),
    "UNKWN": (RUNS, "its machine does not answer"),
    "ZOMBI": (LEAVES, "is ending"),
}
OVER = ("DONE", "EXIT")


class Lsf:
    name = "lsf"
    submits = "bsub"
    hint = "bhosts shows the machines, bqueues the queues"
    task = "${LSB_JOBID}_${LSB_JOBINDEX}"
    nothing = r"no (unfinished|matching) job|is not found"
    refusals: Sequence[tuple[str, str]] = (
        (r"no such queue|bad queue", "bqueues lists them; set `queue`"),
        (r"project", "set `project`; the site says which"),
        (r"array.*(too large|limit)|bad job array", "ask for fewer `workers` or set `runs_per_worker`"),
        (r"run ?limit|runtime", "bqueues -l shows the limits; lower `time`"),
        (
            r"resource requirement|bad resource",
            "lower `resources`, or say it in `options` as the site wants it",
        ),
        (r"lsf is down|cannot (connect|contact)|please wait", "LSF does not answer: try again later"),
    )

    def submit(self, fleet: Fleet, launch: Launch, array: Array) -> list[str]:
        own, resources = fleet.options, asked(fleet, launch)
        words = ["bsub", "-J", f"{name_of(fleet, launch)}[1-{array.tasks}]%{array.at_once}"]
        words += ["-r", "-Q", str(AGAIN)] if requeues(fleet) else ["-rn"]
        words += ["-o", "/dev/null"] if launch.logs else []
        words += ["-q", own["queue"]] if own.get("queue") else []
        words += ["-P", own["project"]] if own.get("project") else []
        words += ["-W", str(math.ceil(own["time"] / 60))] if own.get("time") else []
        words += ["-n", str(math.ceil(resources.cpus or 1)), "-R", "span[hosts=1]"]
        words += ["-R", f"rusage[mem={math.ceil(resources.memory / 2**20)}MB]"] if resources.memory else []
        words += ["-gpu", f"num={count}"] if (count := gpus(resources)) else []
        return [*words, *own.get("options", ())]

    def after(self, job: str) -> list[str]:
        return ["-w", f"ended({job})"]

    def job_id(self, out: str) -> str | None:
        match = re.search(r"Job <(\d+)>", out)
        return match[1] if match else None

    def queue(self, run: Run, user: str) -> list[Task]:
        fields = f"{' '.join(FIELDS)} delimiter='{SEPARATOR}'"
        return parse(run(["bjobs", "-u", user, "-noheader", "-o", fields]).out)

    def ending(self, task: Task, *, now: bool) -> list[str]:
        return ["bkill", task.id] if now or task.state == WAITS else ["bkill", "-s", "TERM", task.id]


def parse(text: str) -> list[Task]:
    """Rows of `bjobs -o`. Lines that are not in the format (a site's banner) are passed over."""
    tasks = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(SEPARATOR, len(FIELDS) - 1)]
        if len(parts) != len(FIELDS) or not parts[0].isdigit() or parts[2] in OVER:
            continue
        job, index, stat, host, name, reason = parts
        state, words = STATES.get(stat, (RUNS, stat.lower()))
        told = reason.strip("-; ") if state == WAITS else ""
        own = f"{job}[{index}]" if index.isdigit() and index != "0" else job
        bare = re.sub(r"\[[^\]]*\](%\d+)?$", "", name)
        tasks.append(Task(own, job, bare, state, told or words, host.strip("-")))
    return tasks


def open_backend(fleet: Fleet | None = None) -> SchedulerBackend:
    return SchedulerBackend(Lsf())
