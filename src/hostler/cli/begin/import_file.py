"""Reads a file of another tool as one of ours: its text, its place, and what is lost."""

from __future__ import annotations

from dataclasses import field, replace
from math import prod
from pathlib import Path
from typing import Any

from hostler.errors import MissingError, SpecError, UsageError
from hostler.frozen import dataclass
from hostler.spec import space
from hostler.spec.files.otherwords import meant
from hostler.spec.files.parse import read_documents
from hostler.spec.files.yaml12 import Document
from hostler.spec.formats import array_script, burst, machines, tasks
from hostler.spec.formats.foreign import Foreign
from hostler.spec.formats.reading import is_foreign, recognise
from hostler.spec.formats.writing import to_yaml
from hostler.spec.project import NAMES

SCRIPTS = (".sh", ".sbatch", ".slurm")


@dataclass(frozen=True)
class Imported:
    """A file as one of ours: its text, and its usual place."""

    file: Path
    tool: str
    content: dict[str, Any]
    home: str
    notes: tuple[str, ...]
    there: int | None = None  # runs
    here: int | None = None
    is_sweep: bool = True
    hidden: tuple[Path, ...] = ()  # files that hold secrets
    sweep: dict[str, Any] = field(default_factory=dict)  # a sweep file that goes with a project

    @property
    def text(self) -> str:
        return f"# from {self.file.name} ({self.tool})\n{to_yaml(self.content)}"


def imported(path: Path) -> Imported:
    if path.suffix in SCRIPTS:
        return _script(path)
    document, others = _document(path)
    found = recognise(document, _name(path))
    if found is not None:
        return _sweep(path, document, replace(found, notes=(*found.notes, *others)))
    if tasks.is_it(document.value):
        part: machines.Machines | None = tasks.read(document.value, path.name)
    else:
        part = machines.recognise(document.value, path.name, lambda name: _text(path.parent / name))
    if part is None:
        raise UsageError(f"{path} is not a file of a tool that hostler knows", hint=_hint(document))
    return _machines(path, replace(part, notes=(*part.notes, *others)))


def _document(path: Path) -> tuple[Document, tuple[str, ...]]:
    """The document of a file that is of a tool we know, and a line for each other one."""
    every = read_documents(path)
    able = [document for document in every if _is_known(document.value)]
    if len(able) > 1:
        raise UsageError(f"{path} has {len(able)} tasks", hint="put one into a file of its own")
    if len(every) < 2:
        return (every[0] if every else Document(str(path), None, {})), ()
    chosen = able[0] if able else every[0]
    others = [document for document in every if document is not chosen]
    return chosen, tuple(
        f"the document of line {document.where().rpartition(':')[2]}: not carried over" for document in others
    )


def _is_known(value: Any) -> bool:
    return is_foreign(value) or tasks.is_it(value) or machines.is_it(value)


def _machines(path: Path, part: machines.Machines) -> Imported:
    hidden = (*(path.parent / name for name in part.hidden), *([path] if part.hides_itself else []))
    notes = (*part.notes, *(f"{one} holds secrets: keep it out of what is uploaded" for one in hidden))
    more = {"name": _name(path), "parameters": part.parameters} if part.parameters else {}
    return Imported(path, part.tool, part.project, NAMES[0], notes, is_sweep=False, hidden=hidden, sweep=more)


def with_sweep(one: Imported) -> list[Imported]:
    """A project, and the sweep file with the parameters that stood beside its machines."""
    if not one.sweep:
        return [one]
    sizes = [len(value) if isinstance(value, list) else 1 for value in one.sweep["parameters"].values()]
    runs = prod(sizes)
    return [one, Imported(one.file, one.tool, one.sweep, "sweep.yaml", (), there=runs, here=runs)]


def known(path: Path) -> bool:
    """Whether it is of a tool we know; what cannot be read at all is not."""
    if path.suffix in SCRIPTS:
        text = _text(path) or ""
        return burst.is_it(text) or array_script.is_it(text)
    try:
        return any(_is_known(document.value) for document in read_documents(path))
    except SpecError:
        return False


def sweep_of(path: Path, name: str) -> Imported:
    """A search file under another name than its own."""
    document, _ = _document(path)
    found = recognise(document, name)
    if found is None:
        raise UsageError(f"{path} is not a search of a tool that hostler knows", hint=_hint(document))
    return _sweep(path, document, found)


def _script(path: Path) -> Imported:
    text = _text(path)
    if text is None:
        raise MissingError(f"{path} is missing or not text", hint="hostler import --help lists what it takes")
    if array_script.is_it(text):
        return _machines(path, array_script.read(text, path.name))
    if not burst.is_it(text):
        raise UsageError(
            f"{path} is not a script that hostler knows",
            hint="name one with #SBATCH lines or gcloud compute instances create; for clouDL, its folder",
        )
    found = burst.read(text, lambda name: _text(path.parent / name))
    hidden = [*(path.parent / name for name in found.hidden), *([path] if found.hides_itself else [])]
    notes = (*found.notes, *(f"{one} holds secrets: keep it out of what is uploaded" for one in hidden))
    return Imported(path, found.tool, found.project, NAMES[0], notes, is_sweep=False, hidden=tuple(hidden))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


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
    """The file's name, or its folder's where the file's says nothing."""
    generic = ("hyperparameters", "sweep", "job", "config", "settings")
    return path.absolute().parent.name if path.stem in generic and path.absolute().parent.name else path.stem


def _hint(document: Document) -> str:
    own = document.value if isinstance(document.value, dict) else {}
    if "parameters" in own:
        return "it looks like a sweep file of hostler's own: hostler plan FILE"
    if other := next((key for key in own if meant(key) == "parameters"), ""):
        return f"in a sweep file of hostler's own, `{other}` is called `parameters`"
    return "hostler import --help lists them"
