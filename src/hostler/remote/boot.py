"""The far side's first lines: install hostler if this machine has not got it, start the program asked for.

Sent as one text (`standalone.py`) and run where nothing is installed. Its answers begin with a mark that only
the caller knows: a shell's start-up file may print what it likes.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

from hostler.errors import HostlerError
from hostler.remote.install import install_in_cache


def main() -> None:
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but answers goes back by that pipe
    told = json.loads(source.readline())

    def say(word: str, facts: dict[str, Any]) -> None:
        sink.write(f"\0hostler:{told['mark']}:{word} {json.dumps(facts)}\n".encode())
        sink.flush()

    def receive() -> bytes:
        say("need", {})
        return zlib.decompress(source.read(int(source.readline())))

    if told["cache"]:
        os.environ["HOSTLER_CACHE"] = str(Path(told["cache"]).expanduser())
    try:
        place = install_in_cache("library", told["sha"], receive)
    except HostlerError as error:
        say("refused", {"why": error.message})
        return
    except OSError as error:
        say("disk", {"path": str(error.filename), "why": error.strerror or str(error)})
        return
    sys.path.insert(0, place)
    program = import_module(told["module"])
    facts = {
        "python": platform.python_version(),
        "exe": sys.executable,
        "host": socket.gethostname(),
        "library": place,
        "machine": [sys.platform, platform.machine(), *platform.libc_ver()],
    }
    say("ready", facts)
    program.serve(told["args"], source, sink)


if __name__ == "__main__":
    main()
