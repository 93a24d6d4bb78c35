"""Connections to machines, one for each: asked here, answered there by worker/agent.py.

A connection is opened at the first question and kept. A machine that did not answer a moment ago is not
waited for again: commands ask several times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler import settings
from hostler.backends.base import MachineInfo, Question
from hostler.errors import HostError, HostUnreachable
from hostler.remote.channel import Channel, Cut
from hostler.remote.connection import Connection
from hostler.remote.frames import Frame
from hostler.remote.library_zip import sha_of
from hostler.remote.opening import open_channel
from hostler.remote.target import SshTarget

AGENT = "hostler.worker.agent"
ANSWER = 90.0  # seconds for one answer; the slowest is that of a machine that looks for its store
DOWN_FOR = 20.0  # seconds that a machine which did not answer is not asked again


class Agents:
    def __init__(self) -> None:
        self._channels: dict[tuple[SshTarget, str | None], Channel] = {}
        self._down: dict[SshTarget, tuple[float, HostError]] = {}

    def ask(
        self,
        host: SshTarget,
        op: str,
        body: bytes = b"",
        *,
        cache: str | None = None,
        once: bool = False,
        timeout: float = ANSWER,
        **fields: Any,
    ) -> Frame:
        """The answer; HostError if there is none. Asked again over a new connection, unless `once`."""
        for fresh in (False, True):
            channel = self.channel(host, cache)
            try:
                return channel.ask(op, body, timeout=timeout, **fields)
            except Cut as error:
                if fresh or once:
                    raise HostUnreachable(
                        f"{host} cannot be reached: {error}", "check that it is up"
                    ) from error
        raise AssertionError("the second try returns or raises")

    def bring(self, host: SshTarget, files: Sequence[str], cache: str | None) -> Sequence[str]:
        """Send what the machine has not got; the names by which it knows them."""
        names = []
        for file in files:
            data = Path(file).read_bytes()
            name = sha_of(data)
            if not self.ask(host, "has-wheel", cache=cache, sha=name).header["has"]:
                self.ask(host, "wheel", data, cache=cache, sha=name)
            names.append(name)
        return names

    def survey(self, host: SshTarget, question: Question, cache: str | None) -> MachineInfo:
        """Facts about the machine and what it sees; a refusal is its `problem`."""
        try:
            facts = self.ask(host, "facts", cache=cache, path=question.path).header
            unreached = self.unreached(host, question, cache) if question.store else ""
        except HostError as error:
            return MachineInfo(str(host), error.message, error.hint)
        return MachineInfo(
            host=str(host),
            python=facts["python"],
            platform=tuple(facts["platform"]),
            cpus=facts["cpus"],
            gpus=tuple(facts["gpus"]),
            sees=facts["sees"],
            unreached=unreached,
            home=facts["home"],
            exe=facts["exe"],
            library=facts["library"],
            cache=facts["cache"],
        )

    def unreached(self, host: SshTarget, question: Question, cache: str | None) -> str:
        """Why a worker there could not use the store; '' if it can."""
        wheels = self.bring(host, question.wheels.get(str(host), ()), cache)
        body = json.dumps(dict(question.variables)).encode()
        answer = self.ask(host, "reach", body, cache=cache, store=question.store, wheels=wheels)
        return str(answer.header["unreached"])

    def log(self, host: str, path: str) -> bytes:
        """Content of a file on the machine, over the connection that is open already."""
        for (target, _), channel in self._channels.items():
            if str(target) == host:
                try:
                    return channel.ask("logs", timeout=ANSWER, path=path).body
                except (Cut, HostError):
                    return b""
        return b""

    def channel(self, host: SshTarget, cache: str | None) -> Channel:
        found = self._channels.get((host, cache))
        if found is None or not found.is_open:
            found = self._channels[host, cache] = self._open(host, cache)
        return found

    def _open(self, host: SshTarget, cache: str | None) -> Channel:
        since, error = self._down.get(host, (0.0, None))
        if error is not None and time.monotonic() - since < DOWN_FOR:
            raise error
        try:
            return open_channel(Connection(host, connect=settings.timing().connect), AGENT, {}, cache=cache)
        except HostError as met:
            self._down[host] = (time.monotonic(), met)
            raise
