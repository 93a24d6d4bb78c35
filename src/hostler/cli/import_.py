"""`hostler import`: files of other tools, written as files of ours; what is there is never overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hostler.cli import here, output
from hostler.errors import MachineError, MissingError, SpecError, UsageError
from hostler.spec import space
from hostler.spec.formats import machines
from hostler.spec.formats.foreign import Foreign
from hostler.spec.formats.reading import is_foreign, recognise
from hostler.spec.formats.writing import to_yaml
from hostler.spec.parse import read_document
from hostler.spec.place import NAMES
from hostler.spec.yaml12 import Document

SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class Imported:
    """One file as one of ours: its text, and where it belongs if nobody says otherwise."""

    file: Path
    tool: str
    content: dict[str, Any]
    home: str
    notes: tuple[str, ...]
    there: int | None = None  # runs
    here: int | None = None
    is_sweep: bool = True

    @property
    def text(self) -> str:
        return f"# from {self.file.name} ({self.tool})\n{to_yaml(self.content)}"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("to", required=False)
@here.json_option
def command(file: Path, to: str | None, as_json: bool) -> int:
    """Turn a search or machine file of another tool into one of hostler's; TO is a file, or - for the screen.

    \b
    clouDL               hyperparameters.json, configs.json, or the folder they are in
    experiment-starter   job files (job_details, parameters with LIST)
    Weights & Biases     sweep files
    TensorFlow on GKE    settings.yaml

    `hostler sweep` and `hostler plan` also take them as they are.
    """
    found = [_imported(path) for path in _files(file)]
    if to is not None and len(found) > 1 and to != "-":
        raise UsageError(f"{file} has {len(found)} files to import", hint="name one of them, or leave TO out")
    _check_free([path for one in found if (path := _target(one, to))])
    reports = [_placed(one, to, as_json=as_json) for one in found]
    if as_json:
        output.print_json(reports[0] if len(reports) == 1 else reports)
    return 0


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    candidates = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES and one.name not in NAMES)
    known = [one for one in candidates if _known(one)]
    if not known:
        raise MissingError(f"{path} has no file of a tool that hostler knows", hint="hostler import --help")
    return known


def _known(path: Path) -> bool:
    """Whether it is of a tool we know; what cannot be read at all is not."""
    try:
        value = read_document(path).value
    except SpecError:
        return False
    return is_foreign(value) or machines.recognise(value) is not None


def _imported(path: Path) -> Imported:
    document = read_document(path)
    found = recognise(document, _name(path))
    if found is not None:
        return _sweep(path, document, found)
    part = machines.recognise(document.value)
    if part is None:
        raise UsageError(f"{path} is no file of a tool that hostler knows", hint=_hint(document))
    return Imported(path, part.tool, part.project, NAMES[0], part.notes, is_sweep=False)


def _sweep(path: Path, document: Document, found: Foreign) -> Imported:
    ours = found.document(document)
    budget = found.sweep.get("budget", {}).get("runs")
    size = space.parse(
        found.sweep["parameters"],
        method=found.sweep["method"],
        runs=budget,
        sections=found.sweep.get("sections", ()),
        where=ours.where,
    )
    home = f"{_file_name(found.sweep['name'])}.yaml"
    notes = (*found.notes, *size.notes)
    return Imported(path, found.tool, found.sweep, home, notes, found.runs, size.count or budget)


def _file_name(name: str) -> str:
    """A file's name for a sweep's."""
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in name).strip("-.") or "sweep"


def _name(path: Path) -> str:
    """The folder's, where the file's says nothing."""
    generic = ("hyperparameters", "sweep", "job", "config")
    return path.absolute().parent.name if path.stem in generic and path.absolute().parent.name else path.stem


def _hint(document: Document) -> str:
    if isinstance(document.value, dict) and "parameters" in document.value:
        return "it looks like a sweep file of hostler's own: hostler plan FILE"
    return "hostler import --help lists them"


def _target(one: Imported, to: str | None) -> Path | None:
    """Where its text goes; None: to the screen, also where it is for a file that is there."""
    if to == "-" or (to is None and _to_add(one)):
        return None
    home = Path(to or one.home)
    return home if to or home.absolute() != one.file.absolute() else home.with_suffix(".sweep.yaml")


def _to_add(one: Imported) -> bool:
    return not one.is_sweep and any(Path(name).exists() for name in NAMES)


def _check_free(targets: list[Path]) -> None:
    """Before anything is written."""
    for n, target in enumerate(targets):
        if target.exists() or target in targets[:n]:
            raise UsageError(f"{target} is there already", "name another file, or - for the screen")


def _placed(one: Imported, to: str | None, *, as_json: bool) -> dict[str, Any]:
    target, add = _target(one, to), to is None and _to_add(one)
    if target is not None:
        _write(target, one.text)
    shown = None if target is None else str(target)
    if not as_json:
        if shown is None:
            click.echo(one.text, nl=False)
        for line in _lines(one, shown, add=add):
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


def _write(target: Path, text: str) -> None:
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{target} is there already", "name another file, or - for the screen") from None
    except OSError as error:
        raise MachineError(f"{target}: {error.strerror}") from None


def _lines(one: Imported, shown: str | None, *, add: bool) -> list[str]:
    lines = [f"{one.tool}: {one.file}" + (f" → {shown}" if shown else "")]
    if one.is_sweep:
        there = "no end" if one.there is None else f"{one.there:,} runs"
        lines.append(f"  {there} there, {one.here:,} runs here")
    if add:
        lines.append(f"  {NAMES[0]} is there already: add these lines to it")
    lines += [f"  {note}" for note in one.notes]
    if one.is_sweep and shown:
        lines.append(f"  hostler plan {shown}")
    return lines
