"""`hostler import FOLDER` of a folder that `clouDL_create` made: a project, and what to type from now on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hostler.cli.begin.import_file import Imported, sweep_of
from hostler.errors import MachineError, UsageError
from hostler.spec.files.parse import read_document
from hostler.spec.formats import cloudl_folder
from hostler.spec.formats.cloudl_folder import FOLDER, MACHINES, QUICK, SEARCH, STARTUP, TOKEN, Whole
from hostler.spec.formats.writing import to_yaml
from hostler.spec.project import NAMES

SWEEP = "sweep.yaml"
IGNORE = ".hostlerignore"
LARGEST = 1 << 20  # bytes of a script that is read
SPECIFIC = (".py", ".json", ".md", ".gz", ".zip", ".tar", ".ipynb")  # no script of a shell


@dataclass(frozen=True)
class Brought:
    """A folder as a project: files by their paths from the project on, and lines for a person."""

    folder: Path
    root: Path
    files: dict[str, str]
    sweep: Imported
    whole: Whole

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.sweep.notes, *self.whole.notes)))

    @property
    def modes(self) -> tuple[str, ...]:
        name = shlex.quote(self.sweep.content["name"])
        top = self.whole.archive
        return (
            f"quick_start.sh new      hostler sweep {SWEEP}",
            f"quick_start.sh resume   hostler sweep {SWEEP}, after {SWEEP} was edited: the next round",
            f"quick_start.sh analyze  hostler report {name}; hostler archive --top {top}",
            f"quick_start.sh manual   hostler sweep --no-start {SWEEP}",
        )


def find(path: Path) -> Path | None:
    """The folder that clouDL made: this one, or the one of its usual name in it."""
    for folder in (path, path / FOLDER):
        if folder.is_dir() and cloudl_folder.is_it({one.name for one in folder.iterdir()}):
            return folder
    return None


def bring(folder: Path, root: Path, store: str) -> Brought:
    """Nothing is written yet. `root` is the folder that becomes the project."""
    inside = os.path.relpath(folder.absolute(), root.absolute())
    named = folder.absolute().parent if folder.absolute().name == FOLDER else folder.absolute()
    sweep = sweep_of(folder / SEARCH, named.name or "search")
    configs = read_document(folder / MACHINES).value if (folder / MACHINES).is_file() else None
    texts = {name: _text(folder / name) for name in (STARTUP, QUICK, TOKEN) if (folder / name).is_file()}
    texts |= _others(folder, set(texts))
    if inside.startswith(".."):
        raise UsageError(
            f"{folder} is outside of {root.absolute()}, which becomes the project",
            hint="go to the folder with the code first, or name it: hostler import FOLDER PROJECT",
        )
    whole = cloudl_folder.read(
        texts,
        configs,
        named.name or "search",
        inside,
        lambda path: _text(root / path) if (root / path).is_file() else None,
        sections=len(sweep.content.get("sections", ())) or 1,
        store=store,
    )
    head = f"# from {folder.name} ({cloudl_folder.TOOL})\n"
    files = {NAMES[0]: head + to_yaml(whole.project), SWEEP: sweep.text}
    files |= {name: text for name, text in whole.files.items() if not _is_own(root, name)}
    files |= ignored(root, whole.hidden)
    return Brought(folder, root, files, sweep, whole)


def _others(folder: Path, known: set[str]) -> dict[str, str]:
    """Other scripts, and copies of scripts: they may hold secrets too."""
    found = {}
    for path in folder.iterdir():
        if (
            path.name in known
            or path.suffix in SPECIFIC
            or not path.is_file()
            or path.stat().st_size > LARGEST
        ):
            continue
        with suppress(UsageError):  # no text
            found[path.name] = _text(path)
    return found


def _is_own(root: Path, name: str) -> bool:
    """Whether the package of that name is a person's own and not a leaf of ours."""
    package = (root / name).parent
    if package.name not in ("clouDL", "GCP_AI") or not package.is_dir():
        return False
    return any("hostler" not in _text(one) for one in package.glob("*.py") if one.stat().st_size)


def ignored(root: Path, hidden: Iterable[str]) -> dict[str, str]:
    """Patterns that stay out of snapshots, added to a person's own; nothing where they are there already."""
    path = root / IGNORE
    old = _text(path) if path.is_file() else ""
    new = [one for one in dict.fromkeys(hidden) if one not in old.splitlines()]
    if not new:
        return {}
    return {
        IGNORE: "".join([old, "\n" if old and not old.endswith("\n") else "", *(f"{one}\n" for one in new)])
    }


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text", hint="it should be UTF-8") from None
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}") from None
