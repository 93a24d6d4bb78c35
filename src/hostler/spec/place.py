"""Finds the folder of a project's file, and its store where none is named."""

from __future__ import annotations

from pathlib import Path

NAMES = ("hostler.yaml", "hostler.yml", "hostler.json")


def find_project(start: Path) -> Path | None:
    """The project file of a folder or of the nearest one above it, no further than its git checkout."""
    start = start.absolute()
    for folder in (start, *start.parents):
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
        if (folder / ".git").exists():
            return None
    return None


def default_store(root: Path) -> str:
    return str(root / ".hostler")
