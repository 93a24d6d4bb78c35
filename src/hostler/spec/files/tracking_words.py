"""`trackers:` as it may be written: a name, a list, a table of options; each to the one form it means.

Standard library only. Errors are ValueErrors of one line: the caller knows the file and the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler.spec.nearest import did_you_mean
from hostler.spec.tracking import OPTIONS, Tracking

MODES = ("online", "offline")
_SECRET = re.compile(r"key|token|password|secret", re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PASSWORD = re.compile(r"[^/]*://[^/@]*:[^/@]*@")
_SQLITE = "sqlite:///"


def parse(value: Any) -> tuple[Tracking, ...]:
    """A name, a list of names and tables of one name, or a table: name → options."""
    if isinstance(value, tuple) and all(isinstance(one, Tracking) for one in value):
        return value
    rows = list(value.items()) if isinstance(value, dict) else [_pair(one) for one in _listed(value)]
    trackings = tuple(_one(kind, options) for kind, options in rows)
    kinds = [tracking.kind for tracking in trackings]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise ValueError(f"{kind} is named twice")
    return trackings


def at(trackings: Sequence[Tracking], root: Path) -> tuple[Tracking, ...]:
    """The same with paths from the project's folder on made whole."""
    return tuple(
        Tracking(tracking.kind, {name: _place(name, text, root) for name, text in tracking.options.items()})
        for tracking in trackings
    )


def _listed(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str):
        return [value]
    raise ValueError(f"{value!r} is not a tracker: {', '.join(OPTIONS)}")


def _pair(one: Any) -> tuple[Any, Any]:
    if isinstance(one, dict) and len(one) == 1:
        return next(iter(one.items()))
    return one, None


def _one(kind: Any, options: Any) -> Tracking:
    if not isinstance(kind, str) or kind not in OPTIONS:
        near = did_you_mean(str(kind), list(OPTIONS))
        raise ValueError(f"no tracker named {kind!r} ({near or ', '.join(OPTIONS)})")
    if options is None:
        return Tracking(kind)
    if not isinstance(options, dict):
        raise ValueError(f"{kind}: {options!r} is not a table of options ({', '.join(OPTIONS[kind])})")
    return Tracking(kind, {name: _option(kind, name, text) for name, text in options.items()})


def _option(kind: str, name: Any, text: Any) -> str:
    if name not in OPTIONS[kind]:
        if _SECRET.search(str(name)):
            raise ValueError(
                f"{kind}: {name} is not an option: keys come from the environment (see secrets:)"
            )
        near = did_you_mean(str(name), list(OPTIONS[kind]), f"options: {', '.join(OPTIONS[kind])}")
        raise ValueError(f"{kind} has no option {name!r} ({near})")
    if not isinstance(text, str) or not text:
        raise ValueError(f"{kind}: {name} must be a text")
    if name == "mode" and text not in MODES:
        raise ValueError(f"{kind}: mode is {' or '.join(MODES)}, not {text!r}")
    if name == "uri" and _PASSWORD.match(text):
        raise ValueError("mlflow: a uri with a password is a secret: secrets: [MLFLOW_TRACKING_URI]")
    return text


def _place(name: str, text: str, root: Path) -> str:
    if name == "dir":
        return os.path.normpath(root / Path(text).expanduser())
    if name != "uri":
        return text
    if text.startswith(_SQLITE) and not text.startswith(f"{_SQLITE}/"):
        return f"{_SQLITE}{os.path.normpath(root / text[len(_SQLITE) :])}"
    return text if _URL.match(text) or text == "databricks" else os.path.normpath(root / text)
