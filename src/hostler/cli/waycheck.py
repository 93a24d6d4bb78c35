"""The ways from this machine to others: ssh, Slurm, Kubernetes. What is here, and does it answer?

What is not here is no fault, unless a fleet of the project or its store goes that way.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hostler import env
from hostler.backends.kubernetes import config
from hostler.cli.asking import ask
from hostler.cli.checkup import BAD, NONE, OK, WARN, Check
from hostler.errors import HostlerError
from hostler.spec.project import Project

CONTROLLER = 2.5  # seconds: one that is well may be busy
MOST_NAMES = 6  # partitions in one line
UNCONFIGURED = "Could not establish a configuration source"  # what Slurm's programs say where no cluster is


@dataclass(frozen=True)
class Wanted:
    """Which ways a project goes from this machine."""

    ssh: bool = False
    slurm: bool = False
    kubernetes: bool = False


def wanted(project: Project | None, url: str) -> Wanted:
    """Pure."""
    fleets = list(project.fleets.values()) if project else []
    login = any(fleet.backend == "slurm" and fleet.options.get("login") for fleet in fleets)
    kinds = {
        fleet.backend for fleet in fleets if not (fleet.backend == "slurm" and fleet.options.get("login"))
    }
    return Wanted(
        ssh=login or "ssh" in kinds or url.startswith("ssh://"),
        slurm="slurm" in kinds,
        kubernetes="kubernetes" in kinds,
    )


def ssh(asked: bool) -> Iterator[Check]:
    program = shutil.which("ssh")
    if program is None:
        todo = "install OpenSSH's client" + ("" if asked else ", to use other machines")
        yield Check(BAD if asked else NONE, "ssh", _not_here("fleets and stores by ssh"), todo)
        return
    version = ask([program, "-V"]).first.split(",")[0]
    keys, agent, known = _keys(), _agent(), _known_hosts()
    held = f"{_count(keys, 'key')} in ~/.ssh, {agent or 'none'} in an agent"
    detail = f"{version}; {held}; {_count(known, 'known host')}"
    if keys or agent:
        yield Check(OK, "ssh", detail)
        return
    todo = "ssh-keygen -t ed25519, then ssh-copy-id HOST for each; unless ~/.ssh/config names a key elsewhere"
    yield Check(WARN if asked else NONE, "ssh", detail, todo)


def slurm(asked: bool) -> Iterator[Check]:
    program = shutil.which("sbatch")
    if program is None:
        todo = "go to a login node of the cluster, or name it: `login: HOST` of the fleet"
        detail = _not_here("fleets of `backend: slurm`, on a login node")
        yield Check(BAD if asked else NONE, "slurm", detail, todo if asked else "")
        return
    answer = ask(["sinfo", "--noheader", "--format=%R"], CONTROLLER)
    if answer.code == 0:
        names = list(dict.fromkeys(answer.out.split()))
        shown = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        version = ask([program, "--version"]).first
        yield Check(OK, "slurm", f"{version}; its controller answers; partitions: {shown or 'none'}")
        return
    said = (answer.err.strip().splitlines() or [f"exit {answer.code}"])[-1]
    if UNCONFIGURED in said and not asked:
        yield Check(
            NONE, "slurm", f"its programs are here, but no cluster; {_only('fleets of `backend: slurm`')}"
        )
        return
    detail = f"its programs are here, but its controller does not answer: {said}"
    yield Check(BAD if asked else WARN, "slurm", detail, "try sinfo, look at SLURM_CONF, or ask the site")


def kubernetes(asked: bool) -> Iterator[Check]:
    """A fleet may choose another context, and is asked itself: nothing is missed here then."""
    if not asked and not any(path.is_file() for path in env.kubeconfigs()):
        yield Check(NONE, "kubernetes", f"no kubeconfig; {_only('fleets of `backend: kubernetes`')}")
        return
    try:
        found = config.load(env.kubeconfigs(), None)
    except HostlerError as error:
        yield Check(NONE if asked else WARN, "kubernetes", error.message, error.hint)
        return
    where = f"context {found.context} at {found.server}, namespace {found.namespace}"
    if shutil.which("kubectl") is None:
        yield Check(OK, "kubernetes", f"{where}; kubectl is not here: only `hostler ssh` into pods needs it")
    else:
        yield Check(OK, "kubernetes", where)


def _not_here(what: str) -> str:
    return f"not here; {_only(what)}"


def _only(what: str) -> str:
    return f"needed only for {what}"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'s' * (number != 1)}"


def _folder() -> Path:
    return Path.home() / ".ssh"


def _keys() -> int:
    """Private keys under the names that ssh tries by itself."""
    try:
        return sum(path.is_file() and not path.suffix for path in _folder().glob("id_*"))
    except OSError:
        return 0


def _agent() -> int:
    if shutil.which("ssh-add") is None:
        return 0
    answer = ask(["ssh-add", "-l"])
    return len(answer.out.splitlines()) if answer.code == 0 else 0


def _known_hosts() -> int:
    try:
        lines = (_folder() / "known_hosts").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return len({line.split()[0] for line in lines if line.strip() and not line.startswith("#")})
