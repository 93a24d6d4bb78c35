"""Input of `sbatch`: options as a list of words, and the script. Pure.

A fleet is a job array (`backends/arrays.py`). Options stand on the command line, where any path is safe, and
win over those in a script.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

from hostler import env
from hostler.backends import arrays
from hostler.backends.arrays import NAMED, Array, mark
from hostler.backends.base import Launch
from hostler.spec.formats import submit_script
from hostler.spec.job import Resources
from hostler.spec.names import slug
from hostler.spec.project import Fleet

SOONEST = 120  # seconds: Slurm starts nothing that has not a whole minute before its deadline
NOTICE = 90  # seconds before the time limit at which the worker is told: Slurm may be a minute early

SHAPES = {
    "cpu": Resources(cpus=4, memory=16 * 10**9),
    "small-gpu": Resources(cpus=4, gpus=1, memory=32 * 10**9),
    "large-gpu": Resources(cpus=16, gpus=1, memory=128 * 10**9),
}


def options(fleet: Fleet, launch: Launch, array: Array) -> list[str]:
    """sbatch's options for one array."""
    own = fleet.options
    words = ["--parsable", f"--job-name={name_of(launch)}", f"--comment={comment(fleet, launch)}"]
    words += [f"--array=0-{array.tasks - 1}%{array.at_once}", "--open-mode=append"]
    words += [f"--output={escaped(launch.logs)}/%A_%a.log"] if launch.logs else []
    words += ["--requeue" if _requeues(fleet) else "--no-requeue"]
    words += [f"--{key}={own[key]}" for key in ("partition", "account", "qos", "constraint") if own.get(key)]
    if own.get("time"):
        words += [f"--time={math.ceil(own['time'] / 60)}"]
    if launch.deadline is not None:  # what starts late gets less time, what is too late never starts
        words += [f"--deadline=now+{max(SOONEST, math.floor(launch.deadline - launch.at))}", "--time-min=1"]
    steps = launch.script and not _becomes_worker(launch.script)
    words += [f"--signal={'' if steps else 'B:'}USR1@{notice(fleet)}"]
    return words + _resources(fleet, launch)


def script(fleet: Fleet, launch: Launch, array: Array) -> str:
    """The batch script. A person's own gets the worker's command as its arguments: where it runs them, or in
    place of the program that takes `$1`."""
    if launch.script:
        found = None if takes_arguments(launch.script) else submit_script.find(launch.script)
        return found.text if found else launch.script
    # by ssh nobody has logged in: `module` and the like come with a login shell
    shell = "#!/bin/bash -l" if launch.library else "#!/bin/bash"
    lines = [shell, *fleet.options.get("header", ())]
    cache = fleet.cache or launch.cache
    lines += [f"export {env.CACHE}={shlex.quote(cache)}"] if cache else []
    return "\n".join([*lines, f"exec {shlex.join(worker(fleet, launch, array))}", ""])


def worker(fleet: Fleet, launch: Launch, array: Array) -> list[str]:
    """The worker's command line."""
    nodes = _asked(fleet, launch).nodes
    several = nodes > 1 and not launch.script  # a person's own script says itself how it is started
    return arrays.worker(fleet, launch, array, "slurm", *(["--nodes", str(nodes)] if several else []))


def name_of(launch: Launch) -> str:
    """Name that `squeue` shows until the worker has taken a run and says which."""
    return slug("+".join(launch.sweeps) or "hostler", 60)


def comment(fleet: Fleet, launch: Launch) -> str:
    """The fleet's mark, and which sweeps the job is for; not which if they are too many to write down."""
    sweeps = ",".join(launch.sweeps)
    return f"{mark(fleet)}:{sweeps}" if len(sweeps) <= NAMED else mark(fleet)


def sweeps_of(fleet: Fleet, comment: str) -> tuple[str, ...] | None:
    """Sweeps that a job of the fleet serves, () for all; None for a job that is not the fleet's."""
    own, _, rest = comment[len(mark(fleet)) :].partition(":")
    if not comment.startswith(mark(fleet)) or own:
        return None
    return tuple(filter(None, rest.split(",")))


def notice(fleet: Fleet) -> int:
    """Seconds before the time limit: less where the limit itself is short."""
    limit = fleet.options.get("time")
    return NOTICE if not limit else max(10, min(NOTICE, int(limit // 4)))


def takes_arguments(text: str) -> bool:
    """Whether a person's own script runs what it is given."""
    code = [re.split(r"(?:^|\s)#", line)[0] for line in text.splitlines()]
    return any(sign in line for line in code for sign in ("$@", "$*", "${@"))


def runs_worker(text: str) -> bool:
    """Whether a worker can run by a person's own script."""
    return takes_arguments(text) or submit_script.find(text) is not None


def _becomes_worker(text: str) -> bool:
    """Whether the worker takes the place of the script's shell, and gets its signals."""
    found = None if takes_arguments(text) else submit_script.find(text)
    return found is not None and found.ends_there


def escaped(path: str) -> str:
    """A path in which no % is read as a pattern."""
    return path.replace("\\", "\\\\").replace("%", "%%")


def _requeues(fleet: Fleet) -> bool:
    return bool(fleet.options.get("requeue", True)) and not fleet.options.get("chain")


def _resources(fleet: Fleet, launch: Launch) -> list[str]:
    asked = _asked(fleet, launch)
    words: list[str] = []
    if asked.nodes > 1:
        words += [f"--nodes={asked.nodes}", "--ntasks-per-node=1"]
    if asked.cpus:
        words += [f"--cpus-per-task={math.ceil(asked.cpus)}"]
    if asked.memory:
        words += [f"--mem={math.ceil(asked.memory / 2**20)}M"]
    return words + _gpus(str(fleet.options.get("gres") or ""), asked)


def _gpus(gres: str, asked: Resources) -> list[str]:
    """By the site's way of asking for them, `--gres=gpu:N` unless it is named: `gpu:a100` gets the number
    that the runs take, `gpu:a100:2` has its own; what begins with dashes is the option itself."""
    count = (math.ceil(asked.gpus) or 1) if asked.gpus or asked.gpu_memory else 0
    option, _, kind = gres.partition("=") if gres.startswith("--") else ("--gres", "", gres or "gpu")
    if kind and ((gres and not count) or _has_number(kind)):
        return [f"{option}={kind}"]
    return [f"{option}={kind}:{count}" if kind else f"{option}={count}"] if count else []


def _has_number(kind: str) -> bool:
    return "," in kind or bool(re.fullmatch(r"\d+[KMGT]?", kind.rpartition(":")[2], re.IGNORECASE))


def _asked(fleet: Fleet, launch: Launch) -> Resources:
    """Resources the fleet asks for; where it is silent its shape's, then those of the runs themselves."""
    if fleet.resources is not None:
        return fleet.resources
    shape: Any = fleet.options.get("shape")
    return SHAPES[shape] if shape else launch.resources
