"""A task of another tool as a fleet and a command, and lines about what is not carried over. Pure.

Values that look like secrets are carried over by their names alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.errors import SpecError
from hostler.spec.formats import private, shell, startup
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks import rendezvous
from hostler.spec.names import slug


@dataclass
class Carried:
    """A task as a fleet and a command, and lines about what is not carried over."""

    where: str
    project: dict[str, Any] = field(default_factory=dict)
    fleet: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    def left(self, given: Mapping[str, Any], carried: tuple[str, ...], prefix: str = "") -> None:
        self.notes += [f"{prefix}{key}: not carried over" for key in given if key not in carried]

    def variables(self, given: Any) -> None:
        """Variables as a table, or as a list of NAME=VALUE."""
        env = self.project.setdefault("env", {})
        for name, value in pairs(given):
            if value is None or private.is_secret(name, value) or private.has_shape(value):
                self.secrets.append(name)
                self.notes.append(f"{name}: its value is not carried over: export {name}=... before a sweep")
            else:
                env[name] = value

    def without_secrets(self, given: Any, path: str) -> Any:
        """The same value less what is a secret in it: parameters are kept in the store, and shown."""
        if isinstance(given, list):
            return [self.without_secrets(one, path) for one in given]
        if not isinstance(given, Mapping):
            return given
        secret = [key for key, value in given.items() if looks_secret(str(key), value)]
        self.notes += [
            f"{path}.{key}: secrets cannot be parameters: let the script read a variable that `secrets` names"
            for key in secret
        ]
        return {
            key: self.without_secrets(value, f"{path}.{key}")
            for key, value in given.items()
            if key not in secret
        }

    def script(self, text: str, setup: str = "") -> None:
        """The commands of a shell: the last one that runs a program is the training."""
        if "\n---" in text or not text.strip():
            raise SpecError("it runs no command", "name the file of the training", where=self.where)
        text, given = rendezvous.without(text)
        if given:
            options = ", ".join(f"--{name}" for name in dict.fromkeys(given))
            self.notes.append(f"torchrun {options}: not carried over: hostler tells it the nodes of the run")
        self.begun(startup.read_inline("\n".join(filter(None, [setup, text])), self.where))
        for name in dict.fromkeys(rendezvous.PLATFORMS.findall(text)):
            self.notes.append(
                f"${name}: not set here; RANK, WORLD_SIZE and MASTER_ADDR are, in a run of several nodes"
            )

    def begun(self, begun: startup.Startup) -> None:
        self.project |= {"command": list(begun.command)} if begun.command else {}
        lines = [line for line in begun.setup if line != "set -e"]
        self.project |= {"setup": ["bash", "-c", "; ".join(["set -e", *lines])]} if lines else {}
        self.project |= {"git": begun.git} if begun.git else {}
        self.project |= {"git_token": begun.token} if begun.git and begun.token else {}
        python = {"requirements": begun.requirements} if begun.requirements else {}
        if begun.conda_env and any(re.search(r"conda\b.* create\b", line) for line in begun.setup):
            what = f"conda activate {begun.conda_env}: the setup makes this environment"
            self.notes.append(f"{what}: not carried over: `python: {{conda: environment.yml}}` makes one")
        elif begun.conda_env:
            python = {"conda_env": begun.conda_env}
            left = f": not carried over: install it into {begun.conda_env}"
            self.notes += [f"pip install -r {begun.requirements}{left}"] if begun.requirements else []
        self.project |= {"python": python} if python else {}
        self.project["env"] = {**self.project.get("env", {}), **begun.env}
        self.secrets += begun.secrets
        self.notes += begun.notes

    def nodes(self, given: Any) -> None:
        if (nodes := whole_number(given)) and nodes > 1:
            self.resources["nodes"] = nodes

    def machines(self, tool: str, name: Any, **more: Any) -> Machines:
        fleet = slug(str(name or self.fleet["backend"]))
        made = {key: value for key, value in self.project.items() if value not in ({}, [], None)}
        made |= {"secrets": list(dict.fromkeys(self.secrets))} if self.secrets else {}
        made |= {"resources": self.resources} if self.resources else {}
        if self.fleet["backend"] != "local":
            self.notes.append(
                "store: not in it: name a bucket that its machines reach (store: gs://bucket/runs)"
            )
        made |= {"fleet": fleet, "fleets": {fleet: self.fleet}}
        return Machines(tool, made, tuple(dict.fromkeys(self.notes)), **more)


def looks_secret(name: str, value: Any) -> bool:
    if isinstance(value, list):
        return any(looks_secret(name, one) for one in value)
    return isinstance(value, str) and (private.is_secret(name, value) or private.has_shape(value))


def pairs(given: Any) -> Iterator[tuple[str, str | None]]:
    if isinstance(given, Mapping):
        yield from ((str(name), None if value is None else str(value)) for name, value in given.items())
    for one in given if isinstance(given, list) else ():
        name, equals, value = str(one).partition("=")
        yield name, value if equals else None


def words_of(value: Any, where: str) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    words = shell.words(str(value or ""))
    if value and not words:
        raise SpecError(f"{value!r} is not a command: a quote is not closed", "close it", where=where)
    return words


def table(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key)
    return value if isinstance(value, Mapping) else {}


def whole_number(value: Any) -> int | None:
    return int(str(value)) if re.fullmatch(r"[0-9]{1,6}", str(value)) else None
