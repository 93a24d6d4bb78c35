"""Checks of ssh for `hostler doctor`: its program, and its keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from hostler.backends.doctor import BAD, NONE, OK, WARN, Check, absent, ask
from hostler.spec.project import Fleet
from hostler.spec.units import counted


def checks(fleets: Sequence[Fleet], store: str) -> Iterator[Check]:
    yield from check(wanted(fleets, store))


def wanted(fleets: Sequence[Fleet], store: str) -> bool:
    """Whether a fleet, its login node or the store is reached by ssh. Pure."""
    by_ssh = any(fleet.backend == "ssh" or fleet.options.get("login") for fleet in fleets)
    return by_ssh or store.startswith("ssh://")


def check(asked: bool) -> Iterator[Check]:
    program = shutil.which("ssh")
    if program is None:
        todo = "install OpenSSH's client" + ("" if asked else ", to use other machines")
        yield Check(BAD if asked else NONE, "ssh", absent("fleets and stores by ssh"), todo)
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


def _count(number: int, what: str) -> str:
    return counted(number, what) if number else f"no {what}s"


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
