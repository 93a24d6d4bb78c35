"""clouDL's `quick_start.sh`: how many workers, how many models are archived, which data and bucket. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostler.spec.formats import shell

_KNOWN = (
    *("--mkbucket", "--archive", "--hyparams", "--cluster", "--location", "--tokenpth", "--datapth"),
    *("--errs", "--best", "--results"),
)


@dataclass(frozen=True)
class QuickStart:
    workers: int = 0  # 0: it does not say
    archive: int = 3  # what clouDL takes where nothing is said
    data: str = ""
    token: str = ""  # the file with it
    project: str = ""
    bucket: str = ""
    notes: tuple[str, ...] = ()


def read(text: str) -> QuickStart:
    """Its modes are branches of one script: what each is called with is read, wherever it stands."""
    joined = text.replace("\r\n", "\n").replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if not line.strip().startswith("#")]
    known = _assigned(lines)
    calls = [
        shell.words(shell.filled(line, known)) for line in lines if re.match(r"clouDL(_analyze)?\s", line)
    ]
    plain = [words for words in calls if words and words[0] == "clouDL"]
    places = [words[1:3] for words in plain if len(words) > 2 and not any("$" in one for one in words[1:3])]
    project, bucket = places[0] if places else ("", "")
    named = {**_cluster(plain), "hyperparameters.json": _of(plain, "--hyparams", "-p")}
    others = [
        f"quick_start.sh names {path}, and {usual} is what was read: rename it, then again"
        for usual, path in named.items()
        if path and PurePosixPath(path).name != usual
    ]
    return QuickStart(
        _number(_of(plain, "--cluster", "-c")),
        _number(_of(plain, "--archive", "-a")) or 3,
        _of(plain, "--datapth", "-d"),
        _of(plain, "--tokenpth", "-t"),
        project,
        f"{project}-{bucket}" if bucket else "",
        (*_others(calls), *others),
    )


def _assigned(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        for one in shell.split(line):
            given = shell.assignment(one)
            if given and not re.search(r"\$\d", given[1]):
                found[given[0]] = shell.filled(given[1], found)
    return found


def _of(calls: list[list[str]], *names: str) -> str:
    """The word after an option, where one of the calls has it."""
    for words in calls:
        for n, word in enumerate(words[:-1]):
            if word in names:
                return words[n + 1]
    return ""


def _cluster(calls: list[list[str]]) -> dict[str, str]:
    """The files that follow the number of workers, by their usual names."""
    for words in calls:
        for n, word in enumerate(words):
            if word in ("--cluster", "-c"):
                return dict(zip(("configs.json", "user_startup.sh"), words[n + 2 : n + 4], strict=False))
    return {}


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _others(calls: list[list[str]]) -> list[str]:
    options = [word for words in calls for word in words if re.match(r"--[a-z]", word)]
    return [
        f"quick_start.sh: {one} is not carried over" for one in dict.fromkeys(options) if one not in _KNOWN
    ]
