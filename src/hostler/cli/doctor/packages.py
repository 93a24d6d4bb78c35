"""Versions of what hostler is made of and of its extras: what is installed, and what each is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import metadata

from hostler.backends.doctor import BAD, NONE, OK, WARN, Check
from hostler.backends.registry import BACKENDS, part

EXTRAS = {  # what people install by name, and for what; those for developers are not told of
    "buckets": "stores in s3://, gs://, az://",
    "sync": "hostler sync while you edit",
    "search": "searches that learn",
    "analysis": "df, plot, report, ui",
    **{name: use for name in BACKENDS if (use := getattr(part(name, "doctor"), "EXTRA", ""))},
    "notify": "messages",
    "wandb": "that tracker",
    "mlflow": "that tracker",
    "comet": "that tracker",
    "trackio": "that tracker",
    "train": "hostler train",
    "vision": "its pictures",
    "hydra": "its multiruns on a fleet",
    "notebooks": "functions of notebook cells, notebooks as scripts",
    "mcp": "hostler mcp, for assistants",
    "hub": "hostler push hf://…",
    "text": "its language models",
    "clip": "its CLIP models",
    "tfds": "its TensorFlow data sets",
}
_FORM = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?\s*(?:>=\s*([\d.]+))?[^;]*(?:;.*extra\s*==\s*['\"]([^'\"]+))?"
)

Find = Callable[[str], "str | None"]  # a package's version, None if it is not installed


def versions() -> Iterator[Check]:
    try:
        own = metadata.requires("hostler") or []
    except metadata.PackageNotFoundError:
        yield Check(
            NONE, "packages", "hostler runs from its source, so the versions it needs are not recorded"
        )
        return
    yield from told(own, installed)


def installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def told(lines: list[str], find: Find) -> Iterator[Check]:
    """Findings about these requirements. Pure but for `find`."""
    wanted = _by_extra(lines)
    yield from _base(wanted.get("", {}), find)
    missing = []
    for extra, use in EXTRAS.items():
        needs = wanted.get(extra, {})
        absent = [name for name in needs if find(name) is None]
        old = _old(needs, find)
        if old:
            yield Check(WARN, extra, f"{', '.join(old)}", f"pip install --upgrade 'hostler[{extra}]'")
        elif needs and not absent:
            yield Check(OK, extra, ", ".join(f"{name} {find(name)}" for name in needs))
        elif needs:
            missing.append(f"{extra} ({use})")
    if missing:
        detail = f"not installed, and needed only for what they name: {', '.join(missing)}"
        yield Check(NONE, "extras", detail, "pip install 'hostler[NAME]'")


def _base(needs: dict[str, str], find: Find) -> Iterator[Check]:
    wrong = [f"{name} is not installed" for name in needs if find(name) is None] + _old(needs, find)
    if wrong:
        yield Check(BAD, "packages", "; ".join(wrong), "install hostler again: pip brings what it needs")
    else:
        yield Check(OK, "packages", ", ".join(f"{name} {find(name)}" for name in needs))


def _old(needs: dict[str, str], find: Find) -> list[str]:
    return [
        f"{name} is {version}, and {least} or newer is needed"
        for name, least in needs.items()
        if (version := find(name)) and _numbers(version) < _numbers(least)
    ]


def _by_extra(lines: list[str]) -> dict[str, dict[str, str]]:
    """extra → package → the oldest version that will do; '' holds what is always needed."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        read = _FORM.match(line)
        if read and read[1].lower() != "hostler":
            found.setdefault(read[3] or "", {})[read[1]] = read[2] or "0"
    return found


def _numbers(version: str) -> tuple[int, ...]:
    digits = [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]
    while digits and digits[-1] == 0:
        digits.pop()
    return tuple(digits)
