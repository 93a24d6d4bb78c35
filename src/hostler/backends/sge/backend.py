"""Workers as tasks of Grid Engine's job arrays: qsub starts them, qstat lists them, qdel ends them.

`-notify` has qdel announce the end by SIGUSR2, as long before as the queue says (a minute, by default); exit
code 99 puts a task back into the queue. Both are looked after by host.py.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence

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
from hostler.spec.project import Fleet

# Letters of a state, the first that is there counts: state, and words for people.
STATES = (
    ("d", (LEAVES, "is ending")),
    ("E", (WAITS, "in error: qstat -j says why, qmod -cj lets it try again")),
    ("h", (WAITS, "held: qrls lets it go; an array that follows another waits for that one")),
    ("q", (WAITS, "for a free slot")),
    ("s", (RUNS, "suspended: its run is taken over when its heartbeat stands still")),
    ("S", (RUNS, "suspended with its queue: its run is taken over meanwhile")),
    ("T", (RUNS, "suspended by a threshold: its run is taken over meanwhile")),
    ("t", (RUNS, "is being started")),
    ("r", (RUNS, "runs")),
)


class Sge:
    name = "sge"
    submits = "qsub"
    hint = "qhost shows the machines, qconf -sql the queues"
    task = "${JOB_ID}_${SGE_TASK_ID}"
    nothing = r"do not exist"
    refusals: Sequence[tuple[str, str]] = (
        (r"parallel environment|unknown pe|pe .*does not exist", "qconf -spl lists them; set `pe`"),
        (r"unknown queue|queue .*does not exist", "qconf -sql lists them; set `queue`"),
        (r"unknown project|project .*(unknown|not)", "qconf -sprjl lists them; set `project`"),
        (r"unknown resource|invalid resource", "qconf -sc lists them; set `memory` or `gpu` of the fleet"),
        (
            r"no suitable queues|not allowed to run in any",
            "lower `resources` or `time`; qstat -g c shows queues",
        ),
        (r"unable to contact|can't connect|commlib", "Grid Engine's master does not answer: try again later"),
    )

    def submit(self, fleet: Fleet, launch: Launch, array: Array) -> list[str]:
        own = fleet.options
        words = ["qsub", "-terse", "-V", "-notify", "-S", "/bin/bash", "-N", name_of(fleet, launch)]
        words += ["-t", f"1-{array.tasks}", "-tc", str(array.at_once), "-r", "y" if requeues(fleet) else "n"]
        words += ["-j", "y", "-o", "/dev/null"] if launch.logs else []
        words += ["-q", own["queue"]] if own.get("queue") else []
        words += ["-P", own["project"]] if own.get("project") else []
        words += ["-l", f"h_rt={math.ceil(own['time'])}"] if own.get("time") else []
        return words + _resources(own, fleet, launch) + list(own.get("options", ()))

    def after(self, job: str) -> list[str]:
        return ["-hold_jid", job]

    def job_id(self, out: str) -> str | None:
        """`-terse` prints `71.1-3:1`, after whatever a site's wrapper has to say."""
        ids = re.findall(r"^(\d+)(?:\.\S+)?\s*$", out, re.MULTILINE)
        return ids[-1] if ids else None

    def queue(self, run: Run, user: str) -> list[Task]:
        return parse(run(["qstat", "-r", "-xml", "-u", user]).out)

    def ending(self, task: Task, *, now: bool) -> list[str]:
        """A task that runs is told before it is killed, whatever is asked: no user can do without that."""
        return ["qdel", task.id]


def parse(text: str) -> list[Task]:
    """Rows of `qstat -r -xml`."""
    start = text.find("<?xml")
    try:
        whole = ET.fromstring(text[start:]) if start >= 0 else ET.Element("none")
    except ET.ParseError as error:
        raise MachineError(f"qstat's answer cannot be read: {error}", "try qstat -xml") from None
    return [task for row in whole.iter("job_list") for task in _tasks(row)]


def _tasks(row: ET.Element) -> Iterator[Task]:
    said = {part.tag: (part.text or "").strip() for part in row}
    job, ranges, letters = said.get("JB_job_number", ""), said.get("tasks", ""), said.get("state", "")
    state, words = next((known for sign, known in STATES if sign in letters), (RUNS, letters))
    host = said.get("queue_name", "").partition("@")[2]
    name = said.get("full_job_name") or said.get("JB_name", "")
    for part in ranges.split(",") if ranges else [""]:
        own = part if _span(part) > 1 else part.partition("-")[0]
        yield Task(f"{job}.{own}" if part else job, job, name, state, words, host, _span(part))


def _span(part: str) -> int:
    """Tasks of `7` or `3-9:1`; whatever else it is, it is one."""
    match = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?", part)
    return max(1, len(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))) if match else 1


def _resources(own: Mapping[str, str], fleet: Fleet, launch: Launch) -> list[str]:
    """Sites name these themselves; memory is asked for each slot."""
    resources = asked(fleet, launch)
    slots = math.ceil(resources.cpus or 1)
    words = ["-pe", own.get("pe") or "smp", str(slots)] if slots > 1 else []
    if resources.memory:
        words += ["-l", f"{own.get('memory') or 'mem_free'}={math.ceil(resources.memory / 2**20 / slots)}M"]
    if count := gpus(resources):
        words += ["-l", f"{own.get('gpu') or 'gpu'}={count}"]
    return words


def open_backend(fleet: Fleet | None = None) -> SchedulerBackend:
    return SchedulerBackend(Sge())
