"""Checks that refuse a machine before its first run, in one line with what to do.

Disk, and packages against the pins of a requirements file. CPUs, memory and GPUs are the business of
`slots.py`: what does not fit is left to others.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostler import settings
from hostler.errors import MachineError
from hostler.worker.prepare import packages

_PIN = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*={2,3}\s*(?P<version>[^\s;,#\\]+)\s*(?:#.*|\\|--.*)?"
)


def check_disk(what: str, folder: Path) -> None:
    least = settings.sizes().disk_min
    free = shutil.disk_usage(_existing(folder)).free
    if free < least:
        raise MachineError(
            f"only {free / 1e9:.2f} GB are free for the {what} at {folder}, {least / 1e9:.2f} GB are wanted",
            hint="free some space, name another folder, or set HOSTLER_DISK_MIN to allow less",
        )


def check_pins(exe: str, requirements: Sequence[str]) -> None:
    """Raise MachineError unless the interpreter has every `name==version` of these lines."""
    wrong = unmet(requirements, packages.inspect(exe).packages)
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise MachineError(
            f"{exe} does not have what the requirements pin: {'; '.join(wrong[:3])}{more}",
            hint="install them there, or let hostler do it with `python: {requirements: FILE}`",
        )


def unmet(requirements: Sequence[str], installed: Mapping[str, str]) -> list[str]:
    """The pins that are not installed so. Lines other than plain pins are skipped."""
    have = {_canonical(name): version for name, version in installed.items()}
    wrong: list[str] = []
    for line in requirements:
        match = _PIN.fullmatch(line)
        if match is not None:
            found = have.get(_canonical(match["name"]))
            if found is None or not _same(found, match["version"]):
                wrong.append(f"{match['name']}=={match['version']} (has {found or 'none'})")
    return wrong


def _same(installed: str, pinned: str) -> bool:
    if "+" not in pinned:
        installed = installed.partition("+")[0]  # 2.1.0+cu121 is a 2.1.0
    if pinned.endswith(".*"):
        return f"{installed}.".startswith(pinned[:-1])
    return _trimmed(installed) == _trimmed(pinned)


def _trimmed(version: str) -> str:
    return re.sub(r"(?:\.0)+$", "", version.lower().removeprefix("v"))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())
