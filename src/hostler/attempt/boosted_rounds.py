"""Rounds that XGBoost's models in a restored checkpoint hold.

XGBoost prints its rounds from [0] again when a training goes on, and saves a model before it prints the
round: only the model says for sure which one is the next.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ENDS = (".ubj", ".json", ".model")
HEAD = 1 << 20  # bytes of a model that hold the array, which comes before the trees
_LEARNER = re.compile(rb'\{(?:L.{7}\x07|\s*")learner', re.DOTALL)
_ARRAY = re.compile(
    rb'iteration_indptr(?:"\s*:\s*\[(?P<json>[\d,\s]*)\]|\[(?:\$.)?#(?:[iU](.)|I(.{2})|l(.{4})|L(.{8})))',
    re.DOTALL,
)


def boosted_rounds(folder: Path) -> int:
    """The most rounds that a model in this folder has; 0 if there is none of XGBoost's."""
    names = [os.path.join(at, name) for at, _, files in os.walk(folder) for name in files]
    return max((_rounds(Path(name)) for name in names if name.endswith(ENDS)), default=0)


def _rounds(model: Path) -> int:
    try:
        with open(model, "rb") as file:
            begin = file.read(64)
            match = _ARRAY.search(begin + file.read(HEAD)) if _LEARNER.match(begin) else None
    except OSError:
        return 0
    if not match:
        return 0
    if match["json"] is not None:
        return match["json"].count(b",")
    return int.from_bytes(next(filter(None, match.groups()[1:])), "big") - 1
