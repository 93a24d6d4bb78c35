"""`hostler ssh`: a shell or a command on a machine of a fleet; -L brings ports of it here."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from hostler.backends.base import Address
from hostler.cli import here
from hostler.cli.machines.hosts import entered, host_of
from hostler.errors import UsageError
from hostler.remote.connection import no_ssh, ssh_options
from hostler.remote.target import SshTarget

_PORTS = re.compile(r"(?:(\d{1,5}):)?(\d{1,5})")


def command(ports: tuple[str, ...], host: str | None, words: tuple[str, ...]) -> int:
    """Open a shell on a machine of a fleet, named in hostler.yaml or ~/.ssh/config, or run a command."""
    words = words[1:] if words[:1] == ("--",) else words
    inside = entered(here.project(), host)
    if inside is not None:
        _become(inside_command(inside, words, ports, terminal=sys.stdin.isatty()))
    try:
        _become(ssh_command(host_of(here.project(), host), words, ports))
    except FileNotFoundError:
        raise no_ssh() from None


def _become(argv: list[str]) -> NoReturn:
    """This process is that program from now on: whoever ends it ends the connection, too."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program inherits that
    os.execvp(argv[0], argv)


def ssh_command(
    target: SshTarget, words: Sequence[str], ports: Sequence[str] = (), more: Sequence[str] = ()
) -> list[str]:
    """Pure. Forwarded ports are open to this machine alone; `more` are options, as ssh_config has them."""
    forwards = [word for port in ports for word in ("-L", forward(port))]
    strict = ["ExitOnForwardFailure=yes"] if ports else []
    line = [words[0] if len(words) == 1 else shlex.join(words)] if words else []
    return ["ssh", *forwards, *ssh_options(target, (*strict, *more)), "--", target.host, *line]


def inside_command(
    inside: Address, words: Sequence[str], ports: Sequence[str] = (), *, terminal: bool = False
) -> list[str]:
    """Pure. By a program of its platform."""
    if ports:
        raise UsageError(
            f"-L needs ssh, and {inside.name} is reached by {inside.command[0]}",
            hint=f"kubectl port-forward {inside.name} {ports[0]}",
        )
    shell = ["sh", "-c", words[0]] if len(words) == 1 else list(words) or ["sh"]
    return [*inside.command, "--stdin", *(["--tty"] if terminal else []), "--", *shell]


def forward(port: str) -> str:
    match = _PORTS.fullmatch(port)
    numbers = [int(part) for part in match.groups() if part] if match else []
    if not numbers or any(not 0 < number < 65536 for number in numbers):
        raise UsageError(f"-L {port}: not a port", hint="-L 6006, or -L 8080:6006 for another one here")
    return f"127.0.0.1:{numbers[0]}:127.0.0.1:{numbers[-1]}"
