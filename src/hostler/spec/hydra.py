"""Parameters as overrides of Hydra's: `key=value` in its grammar, where text may need quotes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.spec.scalars import kind

RUN_DIR = "hydra.run.dir"

# What Hydra reads as plain text without quotes.
_PLAIN = re.compile(r"(?!(?i:inf|nan)$)[A-Za-z_/][\w/.:%+@?|*-]*", re.ASCII)


def words(params: Mapping[str, Any], places: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """The overrides; Hydra's folder is the output folder, unless the command or a parameter says another."""
    own = [f"{key}={value(given)}" for key, given in params.items()]
    said = RUN_DIR in params or any(word.startswith(f"{RUN_DIR}=") for word in command)
    return own if said else [*own, f"{RUN_DIR}={value(places['output_dir'])}"]


def value(given: Any) -> str:
    """A value as Hydra reads it back."""
    if given is None:
        return "null"
    if isinstance(given, (bool, int, float)):
        return _number(given)
    if isinstance(given, str):
        return given if _PLAIN.fullmatch(given) and kind(given) == "str" else _quoted(given)
    if isinstance(given, Mapping):
        return "{" + ",".join(f"{key}:{value(item)}" for key, item in given.items()) + "}"
    if isinstance(given, (list, tuple)):
        return "[" + ",".join(value(item) for item in given) + "]"
    return _quoted(str(given))


def _number(given: bool | int | float) -> str:
    if given in (float("inf"), float("-inf")) or given != given:
        return {"inf": "inf", "-inf": "-inf"}.get(str(given), "nan")
    return json.dumps(given)


def _quoted(text: str) -> str:
    """Backslashes count only before a quote, so those at such a place are doubled."""
    escaped = re.sub(r"(\\*)'", lambda found: found[1] * 2 + r"\'", text)
    escaped = re.sub(r"(\\+)$", lambda found: found[1] * 2, escaped)
    return f"'{escaped}'"
