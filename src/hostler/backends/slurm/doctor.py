"""Checks of Slurm for `hostler doctor`: its programs, and its controller's answer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from hostler.backends.doctor import BAD, NONE, OK, WARN, Check, absent, ask, only_for
from hostler.spec.project import Fleet

CONTROLLER = 2.5  # seconds: one that is well may be busy
MOST_NAMES = 6  # partitions in one line
UNCONFIGURED = "Could not establish a configuration source"  # Slurm's programs say it where no cluster is


def checks(fleets: Sequence[Fleet], store: str) -> Iterator[Check]:
    yield from check(wanted(fleets))


def wanted(fleets: Sequence[Fleet]) -> bool:
    """Whether jobs are submitted on this machine itself, and not on a login node. Pure."""
    return any(fleet.backend == "slurm" and not fleet.options.get("login") for fleet in fleets)


def check(asked: bool) -> Iterator[Check]:
    program = shutil.which("sbatch")
    if program is None:
        todo = "go to a login node of the cluster, or name it: `login: HOST` of the fleet"
        detail = absent("fleets of `backend: slurm`, on a login node")
        yield Check(BAD if asked else NONE, "slurm", detail, todo if asked else "")
        return
    answer = ask(["sinfo", "--noheader", "--format=%R"], CONTROLLER)
    if answer.code == 0:
        names = list(dict.fromkeys(answer.out.split()))
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        version = ask([program, "--version"]).first
        yield Check(OK, "slurm", f"{version}; its controller answers; partitions: {shown or 'none'}")
        return
    text = (answer.err.strip().splitlines() or [f"exit {answer.code}"])[-1]
    if UNCONFIGURED in text and not asked:
        yield Check(
            NONE,
            "slurm",
            f"its programs are installed, but they know no cluster; {only_for('fleets of `backend: slurm`')}",
        )
        return
    detail = f"its programs are here, but its controller does not answer: {text}"
    yield Check(BAD if asked else WARN, "slurm", detail, "try sinfo, look at SLURM_CONF, or ask the site")
