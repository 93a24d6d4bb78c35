"""`hostler import`: writes files and folders of other tools as ours; overwrites only after asking."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from hostler.cli.begin.import_file import SCRIPTS, Imported, imported, known, sweep_of, with_sweep
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import MachineError, MissingError, UsageError
from hostler.frozen import dataclass
from hostler.spec.files.parse import read_document
from hostler.spec.formats import cloudl_folder
from hostler.spec.formats.cloudl_folder import FOLDER, MACHINES, QUICK, SEARCH, STARTUP, TOKEN, ImportedFolder
from hostler.spec.formats.writing import to_yaml
from hostler.spec.project import NAMES
from hostler.spec.units import counted

SUFFIXES = (".json", ".yaml", ".yml", *SCRIPTS)


def command(file: Path, to: str | None, store_url: str | None, yes: bool, as_json: bool) -> int:
    """Convert a file or folder of another tool into hostler's own."""
    if not file.exists():
        raise MissingError(f"no file or folder named {file}", hint="name one that another tool reads")
    folder = find(file) if file.is_dir() else None
    if folder is not None and (to is None or (to != "-" and Path(to).suffix not in SUFFIXES)):
        return _project(folder, Path(to) if to else Path(), store_url or "", yes=yes, as_json=as_json)
    importeds = [imported(path) for path in _files(folder or file)]
    if to is None or to == "-":
        importeds = [part for one in importeds for part in with_sweep(one)]
    if to is not None and len(importeds) > 1 and to != "-":
        raise UsageError(
            f"{file} has {len(importeds)} files to import", hint="name one of them, or leave TO out"
        )
    places = [_target(one, to) for one in importeds]  # before anything is written: that changes the answer
    targets = {path: one.text for one, path in zip(importeds, places, strict=True) if path}
    if len(targets) < sum(path is not None for path in places):
        names = ", ".join(one.file.name for one in importeds)
        raise UsageError(
            f"{names} in {file}: two of them would become the same file here", hint="name one of them"
        )
    written = write({**targets, **_kept_out(importeds, targets)}, yes=yes)
    reports = [
        _placed(one, path, to, written, as_json=as_json) for one, path in zip(importeds, places, strict=True)
    ]
    if as_json:
        output.print_json(reports[0] if len(reports) == 1 else reports)
    return 0


def _project(folder: Path, root: Path, store: str, *, yes: bool, as_json: bool) -> int:
    brought = bring(folder, root, store)
    written = write({root / name: text for name, text in brought.files.items()}, yes=yes)
    kept = [name for name in brought.files if root / name not in written]
    sweep = brought.sweep
    if as_json:
        files = {"written": [str(path) for path in written], "kept": kept, "notes": list(brought.notes)}
        sizes = {"runs_there": sweep.there, "runs": sweep.here, "project": brought.whole.project}
        output.print_json({"folder": str(folder), "tool": sweep.tool, **files, **sizes})
        return 0
    shown = ", ".join(str(path) for path in written) or "nothing to write: everything is there already"
    click.echo(f"{sweep.tool}: {folder} → {shown}")
    if written and kept:
        click.echo(f"  already there and unchanged: {', '.join(kept)}")
    click.echo(_sizes(sweep))
    for line in (*brought.notes, *brought.modes):
        click.echo(f"  {line}")
    return 0


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    candidates = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES and one.name not in NAMES)
    paths = [candidate for candidate in candidates if known(candidate)]
    if not paths:
        raise MissingError(f"{path} has no file of a tool that hostler knows", hint="hostler import --help")
    return paths


def _kept_out(found: list[Imported], targets: dict[Path, str]) -> dict[Path, str]:
    """`.hostlerignore` beside a project that is written, with the files that hold secrets."""
    hidden = [path.absolute() for one in found for path in one.hidden]
    root = next((path.absolute().parent for path in targets if path.name in NAMES), None)
    if root is None:
        return {}
    names = [str(path.relative_to(root)) for path in hidden if path.is_relative_to(root)]
    return {root / name: text for name, text in ignored(root, names).items()}


def _target(one: Imported, to: str | None) -> Path | None:
    """Where its text goes; None: to the screen, also where it is for a file that is there."""
    if to == "-" or (to is None and _to_add(one)):
        return None
    home = Path(to or one.home)
    return home if to or home.absolute() != one.file.absolute() else home.with_suffix(".sweep.yaml")


def _to_add(one: Imported) -> bool:
    return not one.is_sweep and any(Path(name).exists() for name in NAMES)


def _placed(
    one: Imported, target: Path | None, to: str | None, written: list[Path], *, as_json: bool
) -> dict[str, Any]:
    add = target is None and to is None
    shown = None if target is None else str(target)
    if not as_json:
        if shown is None:
            click.echo(one.text, nl=False)
        same = target is not None and target not in written
        for line in _lines(one, shown, add=add, same=same):
            click.echo(line, err=shown is None)
    sizes = {"runs_there": one.there, "runs": one.here} if one.is_sweep else {}
    return {
        "file": str(one.file),
        "tool": one.tool,
        "written": shown,
        **sizes,
        "notes": list(one.notes),
        "content": one.content,
    }


def _sizes(one: Imported) -> str:
    there, here = ("no limit" if n is None else counted(n, "run") for n in (one.there, one.here))
    return f"  {there} there, {here} here"


def _lines(one: Imported, shown: str | None, *, add: bool, same: bool) -> list[str]:
    lines = [f"{one.tool}: {one.file}" + (f" → {shown}" if shown else "")]
    lines += [f"  {shown} is already there and unchanged"] if same else []
    if one.is_sweep:
        lines.append(_sizes(one))
    if add:
        lines.append(f"  {NAMES[0]} is there already: add these lines to it")
    lines += [f"  {note}" for note in one.notes]
    if one.is_sweep and shown:
        lines.append(f"  hostler plan {shown}")
    return lines


# Writes files of a project; those that are there, and say something else, only if a person agrees.


def write(texts: Mapping[Path, str], *, yes: bool) -> list[Path]:
    """Write all or none; returns those written, without those that exist and are the same."""
    fresh = {path: text for path, text in texts.items() if _there(path) != text.encode()}
    if taken := [path for path, text in fresh.items() if not _keeps(path, text)]:
        _agree(taken, yes=yes)
    for path, text in fresh.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise MachineError(f"{path}: {error.strerror}") from None
    return list(fresh)


def _there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keeps(path: Path, text: str) -> bool:
    """Whether nothing is lost: the file does not exist, or the new text begins with all of it."""
    old = _there(path)
    return not path.exists() or (old is not None and text.encode().startswith(old))


def _agree(taken: list[Path], *, yes: bool) -> None:
    names = ", ".join(map(str, taken))
    text = f"{names} {'is' if len(taken) == 1 else 'are'} there already"
    refused = UsageError(text, "nothing was written; name another file, - for the screen, or -y to overwrite")
    try:
        agreed = ask(f"{text}, with other content. Overwrite?", yes=yes)
    except UsageError:
        raise refused from None
    if not agreed:
        raise refused


# `hostler import FOLDER` of a folder that `clouDL_create` made: a project, and what to type from now on.


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
    whole: ImportedFolder

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
            f"quick_start.sh analyze  hostler report {name} --show; hostler archive --top {top}",
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
            f"{folder} is outside {root.absolute()}, which becomes the project",
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
    return any("hostler" not in _text(path) for path in package.glob("*.py") if path.stat().st_size)


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
