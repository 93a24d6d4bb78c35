"""Starts this program once for each device of the machine, as the ranks of one training.

The process that was started trains nothing: it starts the ranks with its own command, and ends with the exit
code of the first that failed, or 0. Ranks have process groups of their own, so that a signal reaches rank 0
once, from here; rank 0 tells the others. Where this process is killed, the kernel ends them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from hostler import env
from hostler.errors import MachineError
from hostler.sdk.messages import say

LOOPBACK = "127.0.0.1"
SET_PDEATHSIG = 1
PATIENCE = 5.0  # seconds for the others to end by themselves
LOOK = 0.05
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)

Started = Sequence["subprocess.Popen[bytes]"]


def joined() -> bool:
    """Whether this process is a rank that `launched` has started; it lives no longer than that."""
    parent = env.launcher()
    if parent is None:
        return False
    os.setpgid(0, 0)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise MachineError("the process that started this rank has ended", hint="start the training again")
    return True


def launched(count: int) -> int:
    """Exit code of so many ranks, started and waited for."""
    ranks: list[subprocess.Popen[bytes]] = []
    told: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        told.append(number)
        if ranks and ranks[0].poll() is None:
            ranks[0].send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        ranks += started(count)
        if told:  # before there was anybody to tell
            ranks[0].send_signal(told[-1])
        first = _first_failed(ranks)
        _end(ranks)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if first is None:
        return 0
    code = ranks[first].returncode
    if not told:  # last, where the end of a log is looked for
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        say(f"rank {first} was the first to fail: {how}")
    return code if code > 0 else 128 - code


def started(count: int) -> list[subprocess.Popen[bytes]]:
    """The ranks, each with the variables that torchrun would give it."""
    port, command, processes = _free_port(), _command(), list[subprocess.Popen[bytes]]()
    try:
        for rank in range(count):
            own = variables(rank, count, port)
            processes.append(subprocess.Popen(command, env={**env.inherited(), **own}))
    except OSError as error:
        _end(processes)
        raise MachineError(f"{command[0]}: {error.strerror}", hint="multi_gpu: false starts none") from None
    return processes


def variables(rank: int, count: int, port: int) -> dict[str, str]:
    """Variables by which the ranks of one machine find each other. Pure but for who starts them."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        env.LAUNCHER: str(os.getpid()),
    }


def _command() -> list[str]:
    """The words by which this process was started, with the same Python."""
    whole, own = sys.orig_argv, sys.argv
    if whole[-len(own) :] == own:  # a script: a warm start has no Python before it
        return [sys.executable, *whole[1 : len(whole) - len(own)], *own]
    return [sys.executable, *whole[1:]]


def _free_port() -> int:
    allowed = env.ports()
    for port in range(allowed[0], allowed[1] + 1) if allowed else (0,):
        with socket.socket() as tried:
            try:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((LOOPBACK, port))
                return int(tried.getsockname()[1])
            except OSError:
                continue
    where = f" from {allowed[0]} to {allowed[1]}" if allowed else ""
    raise MachineError(f"no free port{where}", hint=f"set {env.PORTS}=FIRST-LAST to other ports, or unset it")


def _first_failed(ranks: Started) -> int | None:
    """The rank that failed first; None if all have ended well."""
    while True:
        codes = [process.poll() for process in ranks]
        failed = next((rank for rank, code in enumerate(codes) if code), None)
        if failed is not None or None not in codes:
            return failed
        time.sleep(LOOK)


def _end(ranks: Started) -> None:
    """End those that are left: SIGTERM, and after a while SIGKILL."""
    processes = [rank for rank in ranks if rank.poll() is None]
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + PATIENCE
    while any(one.poll() is None for one in processes) and time.monotonic() < deadline:
        time.sleep(LOOK)
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
