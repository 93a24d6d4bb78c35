"""`hostler init --template trainer`: the trainer as a package of the user's own, and what runs it.

The package is the trainer's own source, under another name: what is tested there is what is written here.
"""

from __future__ import annotations

import re
from pathlib import Path

COMMAND = "python train.py config.yaml"
METRIC = "test/last/accuracy"
PACKAGE = "trainer"

_HERE = Path(__file__).parent
_OURS = re.compile(r"\bhostler\.train\b")


def texts(name: str) -> dict[str, str]:
    """path → text, of all but hostler.yaml."""
    shipped = sorted((_HERE / "trainer_project").glob("*.txt"))
    found = {one.name.removesuffix(".txt"): one.read_text(encoding="utf-8") for one in shipped}
    found["README.md"] = f"# {' '.join(name.split())}\n\n{found['README.md']}"
    source = _HERE.parents[1] / "train"
    for one in sorted(source.rglob("*.py")):
        text = _OURS.sub(PACKAGE, one.read_text(encoding="utf-8"))
        found[f"{PACKAGE}/{one.relative_to(source).as_posix()}"] = text
    return found
