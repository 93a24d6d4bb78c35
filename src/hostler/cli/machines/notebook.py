"""`hostler notebook`: Jupyter on another machine, in a copy of this project, forwarded to this one alone."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time

import click

from hostler.cli import here
from hostler.cli.machines.hosts import host_of
from hostler.cli.machines.ssh import ssh_command
from hostler.cli.machines.sync import mirror_of, place_of
from hostler.errors import HostError, HostUnreachable, MachineError
from hostler.remote.channel import Channel, Cut
from hostler.remote.connection import Connection
from hostler.remote.opening import open_channel
from hostler.remote.target import SshTarget

DESK = "hostler.remote.jupyter"
START = 90.0
ALONE = (
    "BatchMode=yes",
    "ControlMaster=no",
    "ControlPath=none",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)


def command(host: str | None, port: int | None, python: str | None, classic: bool, no_sync: bool) -> int:
    """Open Jupyter on a machine of a fleet, at an address that only this machine can open, until Ctrl-C."""
    project = here.project()
    target = host_of(project, host)
    place = place_of(project)
    if not no_sync:
        mirror = mirror_of(project, target, place)
        mirror.push()
        mirror.close()
    channel = open_channel(Connection(target), DESK, {"path": place})
    token = secrets.token_hex(24)
    try:
        far = _open(channel, token, python, lab=not classic)
        return _forward(target, port or _free_port(), far, token, channel)
    except KeyboardInterrupt:
        return 0
    finally:
        channel.hang_up()


def _open(channel: Channel, token: str, python: str | None, *, lab: bool) -> int:
    try:
        answer = channel.ask("open", token.encode(), timeout=START, python=python, lab=lab)
    except Cut as error:
        raise HostUnreachable(f"the notebook was not started: {error}", "is the host up?") from error
    return int(answer.header["port"])


def _forward(target: SshTarget, port: int, far: int, token: str, channel: Channel) -> int:
    """Until Ctrl-C, or the connection ends."""
    words = ssh_command(target, ("cat",), (f"{port}:{far}",), ALONE)  # ends with its input, and so with us
    tunnel = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        _await(tunnel, port)
        click.echo(f"http://127.0.0.1:{port}/?token={token}")
        click.echo("hostler: Ctrl-C ends it, on both sides", err=True)
        while tunnel.poll() is None and channel.is_open:
            time.sleep(0.3)
        raise HostUnreachable(f"the connection to {target} ended, and the notebook with it", "start it again")
    finally:
        tunnel.kill()
        tunnel.wait()


def _await(tunnel: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end:
        if tunnel.poll() is not None:
            raise MachineError(f"port {port} could not be forwarded", "give another --port")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise HostError(f"port {port} could not be forwarded in time")


def _free_port() -> int:
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        port: int = connection.getsockname()[1]
        return port
