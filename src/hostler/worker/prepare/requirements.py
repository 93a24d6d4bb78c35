"""Content of a requirements file, so that equal requirements share one environment.

The files it includes count as well. Where it names something in the project (`-e .`, `./pkg`), the
project's content counts too.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from hostler.errors import PrepareError
from hostler.frozen import dataclass

_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s*=\s*|\s+|(?<=-[rc]))(\S.*)")
_LOCAL = re.compile(
    r"""-e\b | --editable\b | \.{1,2}(?:/|\[|$) | .*@\s*file: | file:
        | (?:--find-links|-f)[\s=]+(?![a-z]+://)
        | (?!-)[^\s:]*/                              # a path
        | (?!-)[^\s:]+\.(?:whl|tar\.gz|zip)$""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class PackageRequirements:
    text: bytes  # all files, in the order they are read
    local: bool  # something in them lies in the project

    @property
    def lines(self) -> list[str]:
        """The lines of all files, without comments."""
        return [
            line for text in self.text.decode("utf-8", "surrogateescape").split("\0") for line in _lines(text)
        ]

    def key(self, *more: str) -> str:
        return hashlib.sha256(b"\0".join([self.text, *(m.encode() for m in more)])).hexdigest()[:40]


def read(path: Path) -> PackageRequirements:
    """The file and all it includes; a missing one is a PrepareError."""
    texts = list(files(path).values())
    local = any(_LOCAL.match(line) for text in texts for line in _lines(text))
    return PackageRequirements("\0".join(texts).encode("utf-8", "surrogateescape"), local)


def files(path: Path) -> dict[Path, str]:
    """The same, file by file, in the order they are read."""
    found: dict[Path, str] = {}
    _collect(path, found)
    return found


def _collect(path: Path, found: dict[Path, str]) -> None:
    if path in found:
        return
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise PrepareError(
            f"cannot read {path.name}: {error.strerror}",
            hint="check that it is in the project, and not ignored",
        ) from error
    found[path] = text
    for line in _lines(text):
        included = _INCLUDE.match(line)
        if included and "://" not in included[1]:
            _collect((path.parent / included[1].strip()).resolve(), found)


def _lines(text: str) -> list[str]:
    plain = text.replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"(^|\s)#.*", "", row).strip() for row in plain) if line]
