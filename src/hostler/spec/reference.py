"""A parameter that names another run: `{best-of: SWEEP}` or `{run: RUN}`.

`file:` names one file of it, `step:` one of its checkpoints (a number, `best` or `last`; `RUN@150000` is the
same), and `only: done` refuses a run that a person stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.spec.states import DONE

BEST, RUN, FILE, STEP, ONLY = "best-of", "run", "file", "step", "only"
AT_BEST, AT_LAST = "best", "last"
STEP_HINT = "a number, best or last"

Step = int | str  # of a checkpoint: its number, AT_BEST or AT_LAST


def is_reference(value: Any) -> bool:
    return names_run(value) and (STEP not in value or read_step(value[STEP]) is not None)


def names_run(value: Any) -> bool:
    """Whether a table is a reference, but for its step, which may be wrong."""
    if not isinstance(value, Mapping) or (BEST in value) == (RUN in value):
        return False
    return all(key == STEP or _fits(key, word) for key, word in value.items())


def _fits(key: Any, word: Any) -> bool:
    if key == ONLY:
        return bool(word == DONE)
    return key in (BEST, RUN, FILE) and isinstance(word, str) and bool(word)


def read_step(word: Any) -> Step | None:
    """The step that a word of a file or of the command line means; None if it is not one."""
    if isinstance(word, str):
        if word in (AT_BEST, AT_LAST):
            return word
        return int(word) if word.isdecimal() and word.isascii() and len(word) <= 18 else None
    return word if type(word) is int and word >= 0 else None


def split_step(word: str) -> tuple[str, Step | None]:
    """`RUN@150000` as the run and the step; a word without a step is the name alone."""
    name, _, text = word.rpartition("@")
    step = read_step(text) if name else None
    return (word, None) if step is None else (name, step)
