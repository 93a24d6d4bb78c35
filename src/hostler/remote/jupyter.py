"""The far side of a notebook: Jupyter on this machine's loopback alone, for as long as somebody is connected.

Its token is a variable, not an argument that others could list. It ends with the connection, its kernels too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from hostler import env
from hostler.errors import HostError
from hostler.remote import service
from hostler.remote.frames import ByteSource, Frame, Sink

START = 60.0  # seconds until it listens
GRACE = 10.0


def serve(args: Mapping[str, Any], source: ByteSource, sink: Sink) -> None:
    desk = Notebook(Path(args["path"]).expanduser())
    try:
        service.serve({"open": desk.open}, source, sink)
    finally:
        desk.close()


class Notebook:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def open(self, asked: dict[str, Any], body: bytes) -> Frame:
        """Start it; the port it listens on."""
        self._folder.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        words = [*_jupyter(asked["python"]), "lab" if asked["lab"] else "notebook", "--no-browser"]
        words += ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
        words += ["--allow-root"] if os.getuid() == 0 else []
        with tempfile.TemporaryFile() as said:
            self._process = subprocess.Popen(
                words,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**env.inherited(), "JUPYTER_TOKEN": body.decode()},
            )
            self._await(port, said)
        return Frame({"port": port})

    def close(self) -> None:
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(GRACE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def _await(self, port: int, said: IO[bytes]) -> None:
        assert self._process is not None
        end = time.monotonic() + START
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        said.seek(0)
        lines = said.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        self.close()
        raise HostError(f"Jupyter did not start: {lines[-1]}", "does `jupyter lab` work there?")


def _jupyter(python: str | None) -> list[str]:
    if python:
        return [str(Path(python).expanduser()), "-m", "jupyter"]
    found = shutil.which("jupyter")
    if found is None:
        raise HostError(
            "Jupyter is not installed there",
            "pip install jupyterlab there, or name a Python that has it: --python",
        )
    return [found]


def _free_port() -> int:
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        port: int = connection.getsockname()[1]
        return port
