"""The job of a script started by hand, recognised by its name, or by script and parameters."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.job import Checkpointing, Job
from hostler.spec.names import slug
from hostler.spec.tracking import Tracking


@dataclass(frozen=True)
class Ground:
    """The script's surroundings: the project's folder, its store, and the content of its file."""

    root: Path
    store: str
    project: str
    metric: str | None = None
    goal: str = "max"
    of: str = "kept"
    checkpoint: Checkpointing = Checkpointing()
    tags: tuple[str, ...] = ()
    trackers: tuple[Tracking, ...] = ()


def draft(
    ground: Ground,
    params: Mapping[str, Any],
    *,
    name: str | None,
    tags: Sequence[str],
    notes: str,
    argv: Sequence[str] | None = None,
    trackers: Sequence[Tracking] = (),
) -> Job:
    """The job; its `name` is the first of those that its runs may have."""
    words = list(sys.argv if argv is None else argv)
    script = _script(words, ground.root)
    title = name or Path(script).stem or "python"
    return Job(
        name=slug(name) if name else f"{slug(title, 40)}-{_identity(script, params)}",
        title=title,
        command=("python", script, *words[1:]),
        style="none",
        metric=ground.metric,
        goal=ground.goal,
        of=ground.of,
        checkpoint=ground.checkpoint,
        tags=tuple(dict.fromkeys([*ground.tags, *tags])),
        notes=notes,
        trackers=tuple({tracking.kind: tracking for tracking in (*ground.trackers, *trackers)}.values()),
        by_hand=True,
        runs=(dict(params),),
    )


def _script(words: Sequence[str], root: Path) -> str:
    """The script, from the project's folder on; '' for what has none."""
    if not words or words[0] in ("", "-c", "-m"):
        return ""
    path = Path(words[0]).absolute()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _identity(script: str, params: Mapping[str, Any]) -> str:
    what = json.dumps([script, dict(params)], sort_keys=True, default=str)
    return hashlib.sha256(what.encode()).hexdigest()[:6]
