"""Makes docs/demo.svg: a real run of `hostler demo` in a terminal, as it looks at its end.

python docs/picture.py
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH, HEIGHT = 96, 40
UP = "\x1b[1A"
CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hostler-picture-") as folder:
        code, output = _in_terminal([sys.executable, "-m", "hostler", "demo"], Path(folder))
    if code:  # no picture of a failure
        sys.stderr.buffer.write(output)
        return code
    screen = _screen(output.decode("utf-8", "replace").replace(sys.executable + " -m hostler", "hostler"))
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\x1b[1m$ hostler demo\x1b[0m\n" + screen))
    Path(__file__).with_name("demo.svg").write_text(console.export_svg(title="hostler demo"))
    return 0


def _in_terminal(words: list[str], folder: Path) -> tuple[int, bytes]:
    """(exit code, all it wrote) of a command that believes a person is watching."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    process = subprocess.Popen(
        words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    return process.wait(), written


def _screen(output: str) -> str:
    """The lines that are left when a terminal has obeyed every cursor-up and erase; colours stay."""
    lines, at, last = [""], 0, 0
    for found in [*CODE.finditer(output), None]:
        lines[at] += output[last : found.start() if found else None]
        code = found[0] if found else ""
        if code == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif code == UP:
            at = max(0, at - 1)
        elif code == "\x1b[2K":
            lines[at] = ""
        elif code.endswith("m"):
            lines[at] += code
        last = found.end() if found else last
    return "\n".join(line.rstrip() for line in lines).rstrip()


if __name__ == "__main__":
    sys.exit(main())
