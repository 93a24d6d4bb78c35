"""What git says about a folder: commit, whether it differs, how. Absent git is no error.

Nothing is written: git is told to take no locks.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from hostler import env

DIFF_MAX = 1_000_000  # bytes of diff kept


@dataclass(frozen=True)
class GitState:
    top: Path  # root of the working tree
    commit: str | None  # None before the first commit
    dirty: bool
    diff: str | None
    tracked_ignored: tuple[str, ...]  # tracked files that the ignore rules name, relative to the folder


def read(folder: Path) -> GitState | None:
    """None where there is no git, no repository, or one that git refuses to read."""
    if not _may_be_one(folder):
        return None
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return None
    head = _git(folder, "rev-parse", "--verify", "-q", "HEAD")
    commit = _text(head).strip() or None
    untracked = _names(_git(folder, "ls-files", "--others", "--exclude-standard", "-z"))
    diff = (
        _git(folder, "diff", "HEAD", "--no-ext-diff", "--no-color", "--no-textconv", "--", ".")
        if commit
        else b""
    )
    return GitState(
        top=Path(_text(top).removesuffix("\n")),
        commit=commit,
        dirty=bool(diff or untracked),
        diff=_shown(diff or b"", untracked) if commit else None,
        tracked_ignored=_names(_git(folder, "ls-files", "-c", "-i", "--exclude-standard", "-z")),
    )


def _may_be_one(folder: Path) -> bool:
    """Whether git is worth asking: starting it costs more than a look at the folders above."""
    above = (folder, *folder.absolute().parents)
    return "GIT_DIR" in env.inherited() or any((one / ".git").exists() for one in above)


def _shown(diff: bytes, untracked: tuple[str, ...]) -> str:
    text = diff.decode("utf-8", "replace")
    if len(diff) >= DIFF_MAX:
        text += f"\n# cut at {DIFF_MAX} bytes\n"
    room = DIFF_MAX // 4
    return text + "".join(f"# untracked: {name!r}\n" for name in untracked)[:room]


def _git(folder: Path, *words: str) -> bytes | None:
    """The first megabyte of what git prints; None if it fails."""
    command = ["git", "-C", str(folder), *words]
    quiet = {**env.inherited(), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        with subprocess.Popen(
            command, env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as git:
            assert git.stdout is not None
            out = git.stdout.read(DIFF_MAX)
            if len(out) == DIFF_MAX:
                git.kill()
                return out
    except FileNotFoundError:
        return None
    return out if git.returncode == 0 else None


def _names(out: bytes | None) -> tuple[str, ...]:
    return tuple(_text(name) for name in (out or b"").split(b"\0") if name)


def _text(out: bytes | None) -> str:
    return (out or b"").decode("utf-8", "surrogateescape")
