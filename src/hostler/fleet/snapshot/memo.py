"""Remembers the hash of a folder, so that an unchanged one is not read again.

One small JSON file per folder under the cache. A wrong or damaged memo only costs a reading. A tree
in which something changed within the last seconds is never trusted: a clock may be too coarse to show
the next change.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from hostler.fleet.snapshot.tree import Tree
from hostler.frozen import dataclass

FORMAT = 1
SETTLED = 2.0  # seconds


@dataclass(frozen=True)
class Memo:
    """Remembers one folder's hash in one file."""

    path: Path

    def recall(self, tree: Tree) -> str | None:
        try:
            record = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            return None
        sha = record.get("sha")
        return sha if record.get("signature") == tree.signature() and isinstance(sha, str) else None

    def keep(self, tree: Tree, sha: str, now: float) -> None:
        if now - tree.newest < SETTLED:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        fresh.write_text(json.dumps({"format": FORMAT, "signature": tree.signature(), "sha": sha}))
        os.replace(fresh, self.path)


def of(folder: Path, cache: Path, kind: str) -> Memo:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return Memo(cache / kind / f"{name}.json")
