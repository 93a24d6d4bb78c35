"""hostler.yaml and sweep files, their fleets checked by the keys of each platform (`backends/*/keys.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hostler.backends.registry import BACKENDS
from hostler.spec.files import parse, sweepfile
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.files.yaml12 import Document
from hostler.spec.project import Project


class _Kinds(Mapping[str, type[parse.FleetKeys]]):
    """The keys of each backend's fleets, imported when a file speaks of one."""

    def __getitem__(self, name: str) -> type[parse.FleetKeys]:
        keys: type[parse.FleetKeys] = import_module(f"{BACKENDS[name]}.keys").KEYS
        return keys

    def __contains__(self, name: object) -> bool:
        return name in BACKENDS

    def __iter__(self) -> Iterator[str]:
        return iter(BACKENDS)

    def __len__(self) -> int:
        return len(BACKENDS)


def kinds() -> parse.Kinds:
    """The keys of each backend's fleets."""
    return _Kinds()


def load_project(path: Path) -> Project:
    """The project a file describes; its folder is the project's root."""
    return parse.load_project(path, kinds())


def parse_project(document: Document, root: Path) -> Project:
    return parse.parse_project(document, root, kinds())


def load_sweep(
    path: Path, project: Project, *, commanded: bool = True, program: tuple[str, ...] | None = None
) -> SweepFile:
    """The sweep a file describes, in this project. `commanded`: it must have a command; `program` is it where
    neither file nor project names one."""
    return sweepfile.load_sweep(path, project, kinds(), commanded=commanded, program=program)


def parse_sweep(document: Document, project: Project, path: Path) -> SweepFile:
    return sweepfile.parse_sweep(document, project, path, kinds())


def schemas() -> dict[str, dict[str, Any]]:
    """JSON schemas of both files, for editors."""
    return {"hostler.yaml": parse.schema(kinds()), "sweep.yaml": sweepfile.schema(kinds())}
