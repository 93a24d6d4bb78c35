"""The forms in which single entries of hostler.yaml may be written, each to the one form they mean.

Standard library only. Errors are ValueErrors of one line: the caller knows the file and the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler.errors import UsageError
from hostler.spec import ranking
from hostler.spec.argv import split_command
from hostler.spec.files import hub_address
from hostler.spec.job import MetricSource, by_pattern
from hostler.spec.names import check_part
from hostler.spec.project import GitSource
from hostler.spec.scalars import text
from hostler.spec.units import size

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://.+")
_DATA_URLS = frozenset({"gs", "s3", "az", "hf", "http", "https", "file"})
_GIT = re.compile(
    r"(?P<url>(?:[A-Za-z][A-Za-z0-9+.-]*://[^/]*/|[^/:@]+@[^/:@]+:|[^:@]*/)[^@]*)(?:@(?P<ref>[^@]+))?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CPUS = re.compile(r"[1-9][0-9]{0,3}\+?")
_SMALLEST_MEMORY = 1 << 28
_GPU = re.compile(r"[A-Za-z][A-Za-z0-9-]*(:[1-9][0-9]*)?")
_SMALLEST_DISK = 10**9


def goal(value: Any) -> Any:
    """`max` or `min`, however it is spelled."""
    return ranking.GOALS.get(value, value) if isinstance(value, str) else value


def metric(value: Any) -> Any:
    """A name alone, for a table with the one key."""
    if value is None or isinstance(value, (str, dict)):
        return {"name": value} if isinstance(value, str) else value
    raise ValueError(f"{value!r} is not text (put it in quotes)")


def words(value: Any) -> Any:
    """A command: one text, split by POSIX quoting rules with no shell, or a list of words as they are."""
    if isinstance(value, str):
        return split_command(value)
    if isinstance(value, list):
        if not value:
            raise ValueError("the command is empty")
        return tuple(as_text(word) for word in value)
    raise ValueError(f"{value!r} is not a command (a text or a list of words)")


def alternatives(value: Any) -> Any:
    """`resume`: one command, or a list of them. A list is of commands if it holds lists, if every entry is a
    text of several words, or if every entry gives a path to the same option; else its entries are the words
    of one."""
    if not isinstance(value, list) or not value:
        return (words(value),)
    texts = [entry for entry in value if isinstance(entry, str)]
    several = len(texts) == len(value) and (
        all(len(entry.split()) > 1 for entry in texts) or _give_one_option(texts)
    )
    if several or any(isinstance(entry, list) for entry in value):
        return tuple(words(entry) for entry in value)
    return (words(value),)


def _give_one_option(texts: Sequence[str]) -> bool:
    """Whether each names the checkpoint folder, and those of one word give it to the same option."""
    options = {entry.partition("=")[0] for entry in texts if len(entry.split()) == 1}
    return len(texts) > 1 and len(options) == 1 and all("{checkpoint_dir}" in entry for entry in texts)


def as_text(value: Any) -> Any:
    """Numbers and booleans where text is meant; the rest is left for the type check."""
    return text(value) if isinstance(value, (bool, int, float)) else value


def listed(value: Any) -> Any:
    """A list, or the one entry of it."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str) else value


def lines(value: Any) -> Any:
    """A block of text or a list, as lines."""
    return tuple(value.splitlines()) if isinstance(value, str) else listed(value)


def data_source(value: Any) -> Any:
    """'data/' or 'gs://b/x' for a table with the one key."""
    if not isinstance(value, str):
        return value
    return {"url": value} if _URL.fullmatch(value) else {"path": value}


def data_url(value: str) -> str:
    match = _URL.fullmatch(value)
    if not match or match[1] not in _DATA_URLS:
        raise ValueError(
            f"{value!r} is not an address data can come from (gs, s3, az, hf, http, https, file)"
        )
    if value.startswith(hub_address.SCHEME):
        try:
            hub_address.parse(value)
        except ValueError as error:
            raise ValueError(f"{error} ({hub_address.HINT})") from None
    return value


def git_source(value: Any) -> Any:
    """'https://host/a/b@v1', 'git@host:a/b.git' or '/srv/repo@main'; after the last @ is the ref."""
    match = _GIT.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"{value!r} is not a git address (like https://host/me/code@main)")
    return GitSource(match["url"], match["ref"])


def metric_source(value: Any) -> Any:
    """'auto', 'json', 'none' or {'pattern': REGEX} with a named group for each metric."""
    if isinstance(value, str) and value in ("auto", "json", "none"):
        return MetricSource(json_lines=value != "none", tools=value == "auto")
    pattern = value.get("pattern") if isinstance(value, dict) and set(value) == {"pattern"} else None
    if not isinstance(pattern, str):
        raise ValueError(f"{value!r} is not auto, json, none or {{pattern: REGEX}}")
    return by_pattern(pattern)


def name_part(value: str) -> str:
    try:
        return check_part(value)
    except UsageError:
        raise ValueError(f"{value!r} is not a name (letters, digits and . _ - only)") from None


def quiet_hours(value: str) -> str:
    """'22:00-07:00'."""
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d-([01]?\d|2[0-3]):[0-5]\d", value):
        raise ValueError(f"{value!r} is not a span of hours (like 22:00-07:00)")
    return value


def variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError(f"{value!r} is not the name of a variable (letters, digits and _)")
    return value


def output_path(value: str) -> str:
    """A path or a pattern below the working folder: found wanting now, not when the training is over."""
    if value.startswith(("/", "~")) or ".." in Path(value).parts or not Path(value).parts:
        raise ValueError(
            f"{value!r} is not a path inside the project (what is written elsewhere: $HOSTLER_OUTPUT_DIR)"
        )
    try:
        next(Path(os.devnull).glob(value), None)
    except (ValueError, NotImplementedError) as error:
        raise ValueError(f"{value!r} is not a pattern: {error}") from None
    return value


def outputs(value: Any) -> Any:
    """A list of paths, a single one, or `none`: nothing is kept but the output folder."""
    if value == "none":
        return ()
    if isinstance(value, str) and not set(value) & set("/.*?[~"):
        raise ValueError(f"{value!r} is neither none nor a list of paths (like [{value}/])")
    return listed(value)


def gpu(value: str) -> str:
    if not _GPU.fullmatch(value):
        raise ValueError(f"{value!r} is not a GPU (like T4:1)")
    return value


def gpus(value: Any) -> Any:
    """'T4:1', or a list of those that will do."""
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return tuple(gpu(one) for one in value)
    if not isinstance(value, str):
        raise ValueError(f"{value!r} names no GPU (like T4:1, or [L4:1, T4:1])")
    return gpu(value)


def cpu_bound(value: Any) -> str:
    """8 exactly, or '8+' for at least so many, as text."""
    found = str(value).replace(" ", "")
    if isinstance(value, bool) or not _CPUS.fullmatch(found):
        raise ValueError(f"{value!r} is not a number of CPUs (like 8, or 8+ for at least 8)")
    return found


def memory_bound(value: Any) -> str:
    """'32GB' exactly, or '32GB+' for at least so much, as text."""
    found = str(value).replace(" ", "")
    try:
        plain = found.removesuffix("+")
        least = size(int(plain)) if plain.isdigit() else size(plain)
    except ValueError:
        least = 0
    if isinstance(value, bool) or least < _SMALLEST_MEMORY:
        raise ValueError(f"{value!r} is not a machine's memory (like 32GB, or 32GB+ for at least that)")
    return found


def disk(value: Any) -> int:
    found = size(value)
    if found < _SMALLEST_DISK:
        raise ValueError(f"{value!r} is less than any disk (like 100GB)")
    return found


def spot(value: Any) -> Any:
    if value is True or value is False or value == "prefer":
        return value
    raise ValueError(f"{value!r} is not true, false or prefer")


def volumes(value: Any) -> Any:
    if not isinstance(value, (list, dict)):
        raise ValueError(f"{value!r} is not a list or a table of volumes")
    return value


def store_place(value: str, root: Path) -> str:
    """A URL as it is; a path from the project's folder on."""
    if _URL.fullmatch(value) or value.startswith("memory:"):
        return value
    return str(root / Path(value).expanduser())
