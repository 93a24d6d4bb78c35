"""The processes of one emulated machine, from its boot to its end, seen from the emulator.

`Guest` is one boot. It has a folder of its own (the boot disk), an environment of its own, and a guardian
that holds every process of it. Reports come on a thread of their own and are handed on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler import env, proctable

GUARDIAN = Path(__file__).with_name("guardian.py")
AGENT = Path(__file__).with_name("guest_agent.py")
STARTUP, SHUTDOWN = "startup-script", "shutdown-script"
SERIAL = "serial.log"
_OFF = ("poweroff", "halt", "shutdown", "reboot")

Report = Callable[[Mapping[str, Any]], None]


class Guest:
    def __init__(self, folder: Path, environ: Mapping[str, str], report: Report) -> None:
        self._folder = folder
        self._environ = _furnish(folder) | dict(environ)
        self._report = report
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, name="gce-guest", daemon=True).start()

    @property
    def serial(self) -> Path:
        return self._folder / SERIAL

    def run(self, name: str, script: str) -> None:
        """Begin a script of the machine's metadata; its output goes to the serial port."""
        file = self._folder / "scripts" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(script if script.startswith("#!") else f"#!/bin/bash\n{script}")
        file.chmod(0o755)
        self.say(f"{name}: begins")
        self._start(name, [str(file)])

    def serve_ssh(self, addresses: Sequence[str]) -> None:
        """Begin the guest agent, with an sshd at these addresses of the machine."""
        self._start("guest-agent", [sys.executable, "-I", "-S", str(AGENT), str(self._folder), *addresses])

    def say(self, line: str) -> None:
        """A line of the platform's own on the serial port."""
        with self.serial.open("a") as file:
            file.write(f"google_metadata_script_runner[{self._process.pid}]: {line}\n")

    def ask_to_end(self, name: str) -> None:
        self._ask({"do": "signal", "name": name})

    def end_all(self) -> None:
        """SIGTERM to every process; `empty` is reported when none is left."""
        self._ask({"do": "end"})

    def kill_all(self, *, tell: bool = True) -> None:
        self._ask({"do": "kill", "tell": tell})

    def pids(self) -> set[int]:
        """The processes of the machine, its guardian not among them."""
        return proctable.below(proctable.table(), self._process.pid)

    def close(self) -> None:
        """The power is cut: no process is left when this returns."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with self._writing:
                self._process.stdin.close()
        self._process.wait()

    def _start(self, name: str, words: Sequence[str]) -> None:
        order = {"name": name, "argv": list(words), "cwd": str(self._folder), "log": str(self.serial)}
        self._ask({"do": "start", "env": self._environ, **order})

    def _ask(self, request: Mapping[str, Any]) -> None:
        with self._writing:
            if self._process.stdin is None or self._process.stdin.closed:
                return
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # the guardian is gone, and with it all it held

    def _listen(self) -> None:
        with self._process.stdout or open(os.devnull, "rb") as reports:
            for line in reports:
                self._report(json.loads(line))
        self._report({"gone": True})


def _furnish(folder: Path) -> dict[str, str]:
    """Folders and programs of the machine, and the environment that leads to them."""
    places = {name: folder / name for name in ("home", "tmp", "run", "bin")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    for name in _OFF:
        program = places["bin"] / name
        program.write_text('#!/bin/sh\nexec kill -USR1 "$GCE_GUARDIAN"\n')
        program.chmod(0o755)
    path = [str(places["bin"]), str(Path(sys.executable).parent), env.inherited().get("PATH", os.defpath)]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(places["home"]),
        "TMPDIR": str(places["tmp"]),
        "XDG_RUNTIME_DIR": str(places["run"]),
        "LANG": "C.UTF-8",
        "USER": "root",
        "SHELL": "/bin/bash",
    }
