"""Job arrays of a launch, as every batch scheduler takes them: how many tasks, how many at a time. Pure.

By default each task ends one run, retries included, and takes whichever is next; with `runs_per_worker` there
are `workers` tasks that take so many each.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hostler.backends import privatefile
from hostler.backends.base import Launch
from hostler.frozen import dataclass
from hostler.spec.names import slug
from hostler.spec.project import Fleet

ARRAY = 1000  # tasks of one array: Slurm's own default allows no more
NAMED = 2000  # characters of sweeps' names that are written on a job


@dataclass(frozen=True)
class Array:
    """A job array: so many tasks, at most so many at a time, each of which ends so many runs."""

    tasks: int
    at_once: int
    runs: int | None  # None: until nothing is left


def arrays(fleet: Fleet, runs: int, limit: int = ARRAY) -> tuple[Array, ...]:
    """The arrays of a launch. More tasks than an array may have are several arrays, one after the other."""
    if fleet.runs_per_worker is not None or runs <= 0:
        tasks, each = fleet.workers, fleet.runs_per_worker
    else:
        tasks, each = runs, 1
    sizes = [min(limit, tasks - first) for first in range(0, tasks, limit)]
    return tuple(Array(size, min(size, fleet.workers), each) for size in sizes)


def fewer(given: tuple[Array, ...]) -> tuple[Array, ...]:
    """Half of the tasks, each with twice the runs: what a site with a limit on jobs is asked next."""
    tasks = sum(array.tasks for array in given)
    if tasks <= 1:
        return ()
    half = math.ceil(tasks / 2)
    each = given[0].runs
    runs = None if each is None else math.ceil(each * tasks / half)
    return (Array(half, min(half, given[0].at_once), runs),)


def mark(fleet: Fleet) -> str:
    """By which a fleet's jobs and files are known."""
    return f"hostler:{slug(fleet.scope or 'project', 60)}:{slug(fleet.name, 40)}"


def with_vault(fleet: Fleet, launch: Launch, cache: str) -> Launch:
    """The same with the file that its secrets will be in."""
    if launch.vault or not (launch.secrets or launch.keys):
        return launch
    name = privatefile.name_of(mark(fleet), launch.generation or ",".join(launch.sweeps))
    return replace(launch, vault=f"{privatefile.FILE}{cache}/{privatefile.FOLDER}/{name}")


def worker(fleet: Fleet, launch: Launch, array: Array, host: str, *more: str) -> list[str]:
    """The worker's command line, the same program as everywhere."""
    words = ["env", f"PYTHONPATH={launch.library}"] if launch.library else []
    words += [launch.python, "-m", "hostler.worker", launch.store, "--host", host, "--billed"]
    words += [word for sweep in launch.sweeps for word in ("--sweep", sweep)]
    words += more
    if array.runs is not None:
        words += ["--runs", str(array.runs)]
    words += launch.terms
    words += ["--secrets", launch.vault] if launch.vault else []
    slots = fleet.slots if fleet.runs_per_worker is not None else 1
    return [*words, "--slots", str(slots)] if slots is not None else words
