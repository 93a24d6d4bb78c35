"""Makes the pictures of the docs from real runs: terminals as SVG, the dashboard as PNG.

python docs/picture.py [WORD…]     only those whose name holds a WORD
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
WIDTH, HEIGHT = 96, 40
UP = "\x1b[1A"
CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n")
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # rich would have them fetched from elsewhere


class Refused(Exception):
    """A command failed: no picture of that."""


@dataclass(frozen=True)
class Scene:
    """Commands, and the file that shows what they print. Scenes of one example share its folder."""

    name: str
    example: str  # '' where the commands bring their own
    commands: tuple[str, ...]


SCENES = (
    Scene("demo.svg", "", ("hostler demo",)),
    Scene("images/first-run.svg", "hello", ("hostler run train.py --lr 0.1 --epochs 6", "hostler status")),
    Scene(
        "images/first-sweep.svg", "hello", ("hostler plan sweep.yaml", "hostler sweep -y --wait sweep.yaml")
    ),
    Scene("images/first-best.svg", "hello", ("hostler status", "hostler best hello")),
    Scene("images/first-survive.svg", "survive", ("hostler run train.py --cut_power_at 250",)),
)
DASHBOARD = "images/first-dashboard.png"


def main(words: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="hostler-picture-") as root:
        folders = {name: _copied(name, Path(root)) for name in {scene.example for scene in SCENES}}
        for scene in scenes(words):
            _draw(scene, folders[scene.example], write=_wanted(scene.name, words))
        if _wanted(DASHBOARD, words):
            _photograph(folders["hello"], DOCS / DASHBOARD)
    return 0


def scenes(words: Sequence[str]) -> list[Scene]:
    """Those that are wanted, and those before them in the folder that they share."""
    ends = {scene.example: n for n, scene in enumerate(SCENES) if _wanted(scene.name, words)}
    if _wanted(DASHBOARD, words):
        ends["hello"] = len(SCENES)
    return [
        scene
        for n, scene in enumerate(SCENES)
        if _wanted(scene.name, words) or (scene.example and n < ends.get(scene.example, 0))
    ]


def _wanted(name: str, words: Sequence[str]) -> bool:
    return not words or any(word in name for word in words)


def _copied(example: str, root: Path) -> Path:
    folder = root / (example or "empty")
    if example:
        shutil.copytree(EXAMPLES / example, folder)
    else:
        folder.mkdir()
    return folder


def _draw(scene: Scene, folder: Path, *, write: bool) -> None:
    shown = []
    for command in scene.commands:
        code, output = _in_terminal([sys.executable, "-m", *command.split()], folder)
        text = output.decode("utf-8", "replace").replace(sys.executable + " -m hostler", "hostler")
        if code:
            raise Refused(f"{command}: exit code {code}\n{text}")
        shown.append(f"\x1b[1m$ {command}\x1b[0m\n{_screen(text.replace(f'{folder}/', ''))}")
    if write:
        (DOCS / scene.name).write_text(_svg("\n\n".join(shown), scene.commands[0]))


def _svg(screen: str, title: str) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(screen))
    return FONTS.sub("", console.export_svg(title=title))


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


def _photograph(folder: Path, path: Path) -> None:
    """The curves of the sweep in the dashboard, as Chromium shows them."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    words = [sys.executable, "-m", "hostler", "ui", "--no-browser", "--port", "0"]
    board = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert board.stdout is not None
        address = board.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.goto(address)
            page.get_by_role("link", name="hello", exact=True).first.click()
            page.get_by_role("link", name="Curves").first.click()
            page.locator("canvas, svg.chart").first.wait_for()
            page.wait_for_timeout(1500)
            page.evaluate(
                "for (const e of document.querySelectorAll('#store, .store')) e.textContent = '.hostler'"
            )
            with Image.open(io.BytesIO(page.screenshot())) as whole:
                whole.convert("RGB").quantize(220).save(path, optimize=True)
            browser.close()
    finally:
        board.terminate()
        board.wait(60)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as error:
        sys.exit(str(error))
