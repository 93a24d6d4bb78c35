"""A copy of this trainer in a user's project: its files, and which of them are no longer as they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE, SCRIPT = "trainer", "train.py"
LEFT_OUT = ("copied.py", "fused/offer.py")  # of hostler alone: they are asked before a sweep is submitted
CONFIG = (f"{PACKAGE}/config.py", f"{PACKAGE}/configfile.py")
# Runs that share a process do not pass through these.
BYPASSED = (
    SCRIPT,
    *(
        f"{PACKAGE}/{name}"
        for name in (
            "data/feed.py",
            "epoch.py",
            "evaluation.py",
            "experiment.py",
            "looks.py",
            "loss.py",
            "optimizer.py",
            "parts.py",
            "step.py",
        )
    ),
)

_SOURCE = Path(__file__).parent
_OURS = re.compile(r"\bhostler\.train\b")


def texts(name: str) -> dict[str, str]:
    """path → text of a new project of this name."""
    shipped = sorted((_SOURCE / "project").glob("*.txt"))
    found = {path.name.removesuffix(".txt"): path.read_text(encoding="utf-8") for path in shipped}
    found["README.md"] = f"# {' '.join(name.split())}\n\n{found['README.md']}"
    return {**found, **dict(_package())}


def is_copy(script: Path) -> bool:
    """Whether a copy of the trainer lies beside this script."""
    return script.name == SCRIPT and (script.parent / PACKAGE / "fused" / "seated.py").is_file()


def changed(folder: Path) -> list[str]:
    """Files of the copy in this folder whose text is not hostler's, or that are gone."""
    script = (_SOURCE / "project" / f"{SCRIPT}.txt").read_text(encoding="utf-8")
    return [path for path, text in ((SCRIPT, script), *_package()) if _text(folder / path) != text]


def _package() -> Iterator[tuple[str, str]]:
    """The trainer's own source, under another name: what is tested there is what is written here."""
    for one in sorted(_SOURCE.rglob("*.py")):
        path = one.relative_to(_SOURCE).as_posix()
        if path not in LEFT_OUT:
            yield f"{PACKAGE}/{path}", _OURS.sub(PACKAGE, one.read_text(encoding="utf-8"))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
