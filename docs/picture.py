"""Makes the pictures of the docs from real runs: terminals as SVG, dashboard, report and plots as PNG.

python docs/picture.py [WORD…]     only those whose name holds a WORD
"""

from __future__ import annotations

import fcntl
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

import notebook_picture
from board_pictures import VIEWS, WORKERS, photograph
from photographs import Refused, check_places, chromium, dashboard, save_page
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
WIDTH, HEIGHT = 96, 40
UP = "\x1b[1A"
LIGHT = TerminalTheme(  # the eight colours of a terminal on white, each dark enough to be read
    (255, 255, 255),
    (28, 35, 38),
    [
        (28, 35, 38),
        (176, 40, 31),
        (20, 110, 60),
        (138, 94, 0),
        (36, 88, 160),
        (125, 55, 145),
        (0, 112, 120),
        (88, 99, 105),
    ],
    [(110, 120, 126)],  # grey
)
CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n")
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # rich would have them fetched from elsewhere


@dataclass(frozen=True)
class Scene:
    """Commands, and the file that shows what they print. Scenes of one example share its folder."""

    name: str
    example: str  # '' where the commands bring their own
    commands: tuple[str, ...]
    width: int = 0  # columns; 0: WIDTH
    failing: bool = False  # a command may end with another exit code than 0


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
GALLERY = "images/gallery"
THEMES = ("light", "dark")
SWEEPS = ("pictures", "search", "pair", "broken")
TERMINALS = (
    Scene("pictures", "gallery", ("hostler status pictures --sort -accuracy",), 80),
    Scene("pictures-wide", "gallery", ("hostler status pictures --sort -accuracy",), 120),
    Scene("search", "gallery", ("hostler status search --sort -accuracy",), 80),
    Scene("pair", "gallery", ("hostler status pair", "hostler show pair/0"), 100),
    Scene("broken", "gallery", ("hostler status broken", "hostler errors broken"), 80),
    Scene("all", "gallery", ("hostler status",), 80),
)
PLOTS = {
    "results": ("results", "pictures", "--by", "lr"),
    "best": ("best", "pictures"),
    "grid": ("grid", "pictures", "--column", "width", "--legend", "lr"),
    "parallel": ("parallel", "search"),
    "importance": ("importance", "search"),
    "slices": ("slices", "search"),
    "contour": ("contour", "search", "--keys", "lr,noise"),
    "trend": ("trend", "search"),
    "completion": ("completion", "--all"),
}


def main(words: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="hostler-picture-") as root:
        folders = {name: _copied(name, Path(root)) for name in {scene.example for scene in SCENES}}
        for scene in scenes(words):
            _draw(scene, folders[scene.example], write=_wanted(scene.name, words))
        if _wanted(DASHBOARD, words):
            _photograph(folders["hello"], DOCS / DASHBOARD)
        if _wanted(notebook_picture.FILE, words):
            with chromium() as browser:
                notebook_picture.photograph(folders["hello"], browser, DOCS / notebook_picture.FILE)
        if any(_wanted(name, words) for name in (GALLERY, *(view.file for view in (WORKERS, *VIEWS)))):
            _gallery(Path(root) / "gallery", DOCS / "images", words)
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
    shown = _typed(scene, folder)
    if write:
        (DOCS / scene.name).write_text(_svg(shown, scene.commands[0]))


def _typed(scene: Scene, folder: Path) -> str:
    """The screen after the commands of a scene, with the prompts."""
    shown = []
    for command in scene.commands:
        words = [sys.executable, "-m", *command.split()]
        code, output = _in_terminal(words, folder, scene.width or WIDTH)
        text = output.decode("utf-8", "replace").replace(sys.executable + " -m hostler", "hostler")
        if code and not scene.failing:
            raise Refused(f"{command}: exit code {code}\n{text}")
        text = text.replace(f"{folder}/", "").replace(sys.executable, "python")
        shown.append(f"\x1b[1m$ {command}\x1b[0m\n{_screen(text)}")
    check_places("\n".join(shown), scene.name)
    return "\n\n".join(shown)


def _gallery(folder: Path, out: Path, words: Sequence[str]) -> None:
    """Run a grid of 36, a search with pruning, a gang and a failure, and make pictures of them."""
    if _wanted(WORKERS.file, words):
        _busy(folder.with_name("busy"), out)
    views = [view for view in VIEWS if _wanted(view.file, words)]
    if not views and not _wanted(GALLERY, words):
        return
    shutil.copytree(DOCS / "gallery", folder)
    for name in SWEEPS:
        _hostler(folder, "sweep", "-y", f"{name}.yaml")
        _hostler(folder, "wait", name, code=1 if name == "broken" else 0)
    photograph(folder, views, out)
    if _wanted(GALLERY, words):
        gallery_pictures(folder, DOCS / GALLERY)


def _busy(folder: Path, out: Path) -> None:
    """Two long runs on a fleet with a price, until their worker has been photographed with what it uses."""
    shutil.copytree(DOCS / "gallery", folder)
    _hostler(folder, "sweep", "-y", "--on", "desk", "busy.yaml")
    try:
        photograph(folder, [WORKERS], out)
    finally:
        _hostler(folder, "stop", "busy")


def gallery_pictures(folder: Path, out: Path) -> None:
    """Terminal, plots and report of the runs in a folder, in light and dark."""
    out.mkdir(parents=True, exist_ok=True)
    for scene in TERMINALS:
        shown = _typed(scene, folder)
        for theme in THEMES:
            text = _svg(shown, scene.commands[0], scene.width, theme)
            (out / f"terminal-{scene.name}-{theme}.svg").write_text(text)
    for name, words in PLOTS.items():
        for theme in THEMES:
            style = ["--style", "dark"] if theme == "dark" else []
            _hostler(folder, "plot", *words, *style, "-o", str(out / f"plot-{name}-{theme}.png"))
            _shrink(out / f"plot-{name}-{theme}.png")
    _hostler(folder, "report", "pictures", "-o", str(folder / "pictures.html"))
    _report(folder / "pictures.html", out)


def _hostler(folder: Path, *words: str, code: int = 0) -> None:
    command = [sys.executable, "-m", "hostler", *words]
    done = subprocess.run(command, cwd=folder, env=_installed(), capture_output=True, text=True)
    if done.returncode != code:
        raise Refused(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")


def _installed() -> dict[str, str]:
    """Variables as after an install: `hostler` and `python` are those that make the pictures."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _report(page: Path, out: Path) -> None:
    """The report as Chromium shows it, wide and narrow, and as it prints it."""
    with chromium() as browser:
        for theme in THEMES:
            for width, height in ((1280, 1500), (390, 1300)):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=theme, offline=True
                )
                tab = context.new_page()
                tab.goto(page.as_uri(), timeout=300_000)
                save_page(tab, out / f"report-{width}-{theme}.png")
        tab.pdf(path=str(page.with_suffix(".pdf")), format="A4", print_background=True)
    if shutil.which("pdftoppm"):
        pages = ["pdftoppm", "-r", "70", "-png", "-l", "2", page.with_suffix(".pdf").name, "printed"]
        subprocess.run(pages, cwd=page.parent, check=True)
        _beside(sorted(page.parent.glob("printed-*.png")), out / "report-printed.png")


def _beside(pages: Sequence[Path], path: Path) -> None:
    """Sheets of paper beside each other."""
    from PIL import Image

    sheets = [Image.open(one).convert("RGB") for one in pages]
    whole = Image.new("RGB", (sum(s.width + 16 for s in sheets) - 16, sheets[0].height), "#9aa3a6")
    for n, sheet in enumerate(sheets):
        whole.paste(sheet, (n * (sheet.width + 16), 0))
    whole.quantize(128).save(path, optimize=True)


def _shrink(path: Path) -> None:
    from PIL import Image

    with Image.open(path) as whole:
        whole.convert("RGB").quantize(128).save(path, optimize=True)


def _svg(screen: str, title: str, width: int = WIDTH, theme: str = "dark") -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(screen))
    colours = SVG_EXPORT_THEME if theme == "dark" else LIGHT
    return FONTS.sub("", console.export_svg(title=title, theme=colours))


def _in_terminal(words: list[str], folder: Path, width: int = WIDTH) -> tuple[int, bytes]:
    """(exit code, all it wrote) of a command that believes a person is watching."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, width, 0, 0))
    process = subprocess.Popen(
        words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**_installed(), "TERM": "xterm"}
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
    with dashboard(folder) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(address)
        page.get_by_role("link", name="hello", exact=True).first.click()
        page.get_by_role("link", name="Curves").first.click()
        page.locator("canvas").first.wait_for()
        page.wait_for_timeout(1500)
        save_page(page, path)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as error:
        sys.exit(str(error))
