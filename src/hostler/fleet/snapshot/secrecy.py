"""Refuses code, commands and settings that hold a secret before they are written to the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.fleet.snapshot.ignore import OWN_FILE
from hostler.spec.job import Job

SHORTEST = 6  # letters of a value that is looked for: shorter ones are in every text
LONG = 12  # of one that is looked for in files: words are shorter
SMALL = 64 << 10  # bytes of a file that is looked into


def check(job: Job, token: str | None = None) -> None:
    """UsageError if a spec would show what it only names. `token`: the secret of its code, if it has one."""
    names = dict.fromkeys((*job.secrets, *([token] if token else [])))
    for name in names:
        if name in job.env:
            raise UsageError(
                f"{name} is under `env:` and a secret: the store keeps `env:` readable",
                hint=f"take it out of `env:`, and export {name}=… where you submit",
            )
    _refuse(names, list(_kept(job)))


def check_parameters(job: Job, parameters: Any) -> None:
    """The same for a sweep's, which are computed: as its file has them."""
    _refuse(job.secrets, [("the parameters", text) for text in _texts(parameters)])


def check_code(names: Iterable[str], root: Path, files: Iterable[tuple[str, int]]) -> None:
    """UsageError if a file that is about to be sent holds one of these: an `.env`, a key."""
    values = {name: value.encode("utf-8", "surrogateescape") for name, value in _long(names).items()}
    for file, size in files if values else ():
        data = _data(root / file) if size <= SMALL else b""
        for name in (name for name, value in values.items() if value in data):
            raise UsageError(
                f"the value of {name} stands in {file}, which is part of the code that is sent",
                hint=f"name that file in {OWN_FILE}, or take the value out of it",
            )


def check_bytes(names: Iterable[str], what: str, data: bytes) -> None:
    """The same for what is in no file of the project."""
    for name, value in _long(names).items():
        if value.encode("utf-8", "surrogateescape") in data:
            raise UsageError(
                f"{what} holds the value of {name}, and is part of the code that is sent",
                hint=f"read {name} from the environment inside the function",
            )


def covered(names: Iterable[str], text: str | None) -> str | None:
    """The text without their values."""
    for value in _long(names).values():
        text = text.replace(value, "***") if text else text
    return text


def _long(names: Iterable[str]) -> dict[str, str]:
    return {name: value for name, value in env.secrets(names).items() if len(value) >= LONG}


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone meanwhile, or a link to nowhere
        return b""


def _refuse(names: Iterable[str], kept: list[tuple[str, str]]) -> None:
    for name, value in env.secrets(names).items():
        place = next((where for where, text in kept if value in text), "")
        if len(value) >= SHORTEST and place:
            raise UsageError(
                f"the value of {name} stands in {place}, which is kept in the store",
                hint=f"let the script read {name} from its environment, or a shell: bash -c '… \"${name}\"'",
            )


def _kept(job: Job) -> Iterator[tuple[str, str]]:
    yield from _each("`command`", job.command)
    yield from _each("`setup`", job.setup)
    yield from _each("`resume`", [*job.resume, *(word for words in job.resume_else for word in words)])
    yield from _each("`env`", job.env.values())
    yield from _each("`tags`", job.tags)
    yield from _each("its name", [job.title])
    yield from _each("the parameters", _texts(job.runs))


def _texts(value: Any) -> Iterator[str]:
    """All of them in it, however deep; what is none is as it would be written."""
    if isinstance(value, Mapping):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    else:
        yield str(value)


def _each(where: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((where, text) for text in texts)
