"""How the ssh program is called: never asking, never skipping a host key, arguments quoted for the far side.

A shared connection is multiplexed (ControlMaster) and stays open a while, so that the next command of a
person costs milliseconds; one that is not shared ends with its process. Where the user's own
configuration has a ControlPath, theirs is used: a login with a second factor is made once, by hand.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from hostler import env, private
from hostler.errors import MachineError
from hostler.frozen import dataclass
from hostler.remote.target import SshTarget

PERSIST = 60  # seconds that a shared connection stays open unused
LONGEST_SOCKET = 90  # bytes that the path of a socket may have, with room for ssh's own ending
CLOSED = ("ForwardAgent=no", "ForwardX11=no")  # whatever the user's configuration says
QUIET = ("ClearAllForwardings=yes", "RemoteCommand=none", "PermitLocalCommand=no", "LogLevel=ERROR")


@dataclass(frozen=True)
class Connection:
    target: SshTarget
    shared: bool = True
    connect: float = 10.0  # seconds until a machine that does not answer counts as down
    silence: float = 10.0  # seconds until a link without a sign of life counts as cut

    @property
    def options(self) -> list[str]:
        """All that the ssh program is given before the host's name."""
        beat = max(1, round(self.silence / 3))
        pairs = ["BatchMode=yes", f"ConnectTimeout={max(1, round(self.connect))}"]
        pairs += [f"ServerAliveInterval={beat}", "ServerAliveCountMax=2", *QUIET, *self._multiplexing()]
        return ["-T", *ssh_options(self.target, pairs)]

    def command(self, words: Sequence[str]) -> list[str]:
        """The local command line that runs these words there, whatever shell the user has."""
        return ["ssh", *self.options, "--", self.target.host, shlex.join(words)]

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Run it with pipes, out of the way of a terminal's Ctrl-C."""
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                self.command(words), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except FileNotFoundError:
            raise no_ssh() from None

    def _multiplexing(self) -> list[str]:
        if has_own_socket(self.target):
            return []
        if not self.shared:
            return ["ControlMaster=no", "ControlPath=none"]
        return ["ControlMaster=auto", f"ControlPath={_sockets()}/%C", f"ControlPersist={PERSIST}"]


def ssh_options(target: SshTarget, pairs: Sequence[str] = ()) -> list[str]:
    """Options of every call of the ssh program: from there, nobody can use the user's keys or screen."""
    return [*(word for pair in (*CLOSED, *pairs) for word in ("-o", pair)), *target.options]


def no_ssh() -> MachineError:
    return MachineError("ssh is not installed here", "install the OpenSSH client")


@lru_cache(maxsize=256)
def has_own_socket(target: SshTarget) -> bool:
    """Whether the user's configuration shares connections to it already."""
    try:
        asked = subprocess.run(
            ["ssh", "-G", *ssh_options(target), "--", target.host], capture_output=True, text=True, timeout=20
        )
    except FileNotFoundError:
        raise no_ssh() from None
    except subprocess.TimeoutExpired:
        return False
    found = dict(line.partition(" ")[::2] for line in asked.stdout.splitlines())
    return found.get("controlpath", "none") != "none"


@lru_cache(maxsize=1)
def _sockets() -> str:
    """A folder of this user alone, with a short name."""
    usual = env.machine_dir()
    short = len(str(usual)) + 45 <= LONGEST_SOCKET
    base = usual if short else private.own_folder(Path(f"/tmp/hostler-{os.getuid()}"))
    return str(private.own_folder(base / "ssh")).replace("%", "%%")
