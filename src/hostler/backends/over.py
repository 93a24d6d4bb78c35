"""A terminal on another machine, over one connection: for an engine that is spoken to by commands.

A command with input, which submits something, is never sent twice: it may have been carried out although no
answer came. Variables and input travel over the connection, not on a command line.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from hostler.backends.agents import Agents
from hostler.backends.base import MachineInfo, Question
from hostler.backends.privatefile import PrivateContent
from hostler.backends.terminal import NO_MORE, NOT_PASSED, PATIENCE, Ran, no_folder
from hostler.remote.target import SshTarget

MARGIN = 30.0  # seconds over a command's own limit for its answer to come back
# What a site sets up for people who log in, and a command over ssh does not get.
SETUP = ("PATH", "SLURM_CONF")
_PRINT = ["/bin/bash", "-lc", 'for n in "$@"; do printf "\\0%s=%s" "$n" "${!n}"; done', "hostler", *SETUP]


class Over:
    def __init__(self, target: SshTarget, cache: str | None, agents: Agents | None = None) -> None:
        self.place = str(target)
        self._target, self._cache, self._agents = target, cache, agents or Agents()
        self._user = ""
        self._setup: Mapping[str, str] | None = None  # None: commands were found without it so far

    def run(
        self,
        words: Sequence[str],
        given: str = "",
        variables: Mapping[str, str] = NO_MORE,
        without: Collection[str] = (),
    ) -> Ran:
        """`without` is about variables of the one who types, and those don't come here."""
        ran = self._run(words, given, {**(self._setup or {}), **variables})
        if ran.code != 127 or self._setup is not None:
            return ran
        self._setup = _pairs(self._run(_PRINT, "", {}).out)
        return self._run(words, given, {**self._setup, **variables})

    def make(self, folder: str) -> None:
        ran = self.run(["mkdir", "-p", "--", folder])
        if ran.code:
            raise no_folder(folder, ran.err.strip().rpartition(": ")[2], self.place)

    def has(self, program: str) -> bool:
        return self.run([program, "--version"]).code != 127

    def me(self) -> str:
        if not self._user:
            self._user = self.run(["id", "-u"]).out.strip()
        return self._user

    def survey(self, question: Question) -> MachineInfo:
        return self._agents.survey(self._target, question, self._cache)

    def bring(self, files: Sequence[str]) -> None:
        self._agents.bring(self._target, files, self._cache)

    def keep(self, name: str, kept: PrivateContent) -> None:
        body = json.dumps(asdict(kept)).encode()
        self._agents.ask(self._target, "keep-secrets", body, cache=self._cache, name=name)

    def forget(self, fleet: str, but: str = "") -> None:
        self._agents.ask(self._target, "forget-secrets", cache=self._cache, fleet=fleet, but=but)

    def _run(self, words: Sequence[str], given: str, variables: Mapping[str, str]) -> Ran:
        text = given.encode()
        answer = self._agents.ask(
            self._target,
            "run",
            text + json.dumps(dict(variables)).encode(),
            cache=self._cache,
            once=bool(given),
            timeout=PATIENCE + MARGIN,
            argv=list(words),
            given=len(text),
            without=NOT_PASSED,
            patience=PATIENCE,
        )
        out = answer.header["out"]
        return Ran(answer.header["code"], _text(answer.body[:out]), _text(answer.body[out:]))


def _pairs(said: str) -> dict[str, str]:
    """Variables after the first zero byte: a start-up file may print what it likes before."""
    pairs = [part.partition("=") for part in said.split("\0")[1:]]
    return {name: value for name, _, value in pairs if name in SETUP and value}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
