"""Commands on another machine: what is sent, what comes back, what is not sent twice."""

from __future__ import annotations

import json
from typing import Any

from hostler.backends.agents import Agents
from hostler.backends.arrays import Array
from hostler.backends.base import Launch, MachineInfo
from hostler.backends.over import Over
from hostler.backends.slurm import batch
from hostler.backends.slurm.login import as_seen_from
from hostler.backends.terminal import Ran
from hostler.remote.frames import Frame
from hostler.remote.target import SshTarget
from hostler.spec.project import Fleet
from hostler.worker.agent import HANDLERS


class Near(Agents):
    """An agent without a connection: the machine's own handlers, on this one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []

    def ask(self, host: SshTarget, op: str, body: bytes = b"", **fields: Any) -> Frame:
        self.asked.append({**fields, "op": op, "body": body})
        return HANDLERS[op](fields, body)


def over() -> tuple[Over, Near]:
    near = Near()
    return Over(SshTarget("n1"), None, near), near


def test_code_and_both_outputs_come_back_whatever_is_in_them() -> None:
    terminal, _ = over()
    ran = terminal.run(["sh", "-c", 'cat; printf "%s é" "$1" >&2; exit 3', "sh", "a 'b"], "in\0put ü")
    assert ran == Ran(3, "in\0put ü", "a 'b é")


def test_only_what_has_input_is_never_sent_twice() -> None:
    terminal, near = over()
    terminal.run(["true"])
    terminal.run(["true"], "#!/bin/sh\n")
    assert [asked["once"] for asked in near.asked] == [False, True]


def test_variables_are_on_no_command_line() -> None:
    terminal, near = over()
    assert terminal.run(["sh", "-c", "echo $TOKEN"], "", {"TOKEN": "s3cret"}).out == "s3cret\n"
    assert "s3cret" not in json.dumps(near.asked[0]["argv"])


def test_missing_program_is_looked_up_once_in_a_login_shell() -> None:
    terminal, near = over()
    assert [terminal.run(["no-such-program"]).code for _ in range(3)] == [127] * 3
    assert sum(asked["argv"][0] == "/bin/bash" for asked in near.asked) == 1


def test_a_launch_has_the_paths_of_the_login_node() -> None:
    there = MachineInfo("n1", exe="/usr/bin/python3", library="/home/me/lib", cache="/home/me/.cache/hostler")
    launch = Launch("ssh://n1/~/runs", ("s",), logs="fleets/tau/logs", machines={"n1": there})
    bucket = as_seen_from(launch, "n1")
    assert bucket.store == launch.store and bucket.logs == "/home/me/.cache/hostler/fleets/tau/logs"
    folder = as_seen_from(Launch(**{**vars(launch), "folders": {"n1": "/home/me/runs"}}), "n1")
    assert folder.store == "/home/me/runs" and folder.logs == "/home/me/runs/fleets/tau/logs"
    words = batch.worker(Fleet("tau", "slurm"), folder, Array(1, 1, 1))
    assert words[:5] == ["env", "PYTHONPATH=/home/me/lib", "/usr/bin/python3", "-m", "hostler.worker"]
    assert as_seen_from(launch, "n2") == launch
