"""A folder that `clouDL_create` made, as a project of ours: which files that takes, and what is lost. Pure.

Its modes are verbs: new and resume are `sweep`, analyze is `report` and `archive`, manual is `sweep` with
`--no-start`. Secrets stay where they are: out of snapshots, and written nowhere.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.formats import machines, shell, startup
from hostler.spec.formats.startup import Startup
from hostler.spec.names import slug

TOOL = "clouDL"
SEARCH, MACHINES, STARTUP, QUICK = "hyperparameters.json", "configs.json", "user_startup.sh", "quick_start.sh"
TOKEN, FOLDER = "access_token", "user_files"  # the folder's name, as clouDL makes it
BESIDE = "../data"  # from the script's folder on
SETUP, WHOLE = "cloudl_setup.sh", "cloudl_startup.sh"
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(clouDL|GCP_AI)\b", re.MULTILINE)
_SHIM = {
    "__init__.py": "",
    "manager.py": "from hostler.manager import Manager, TestManager\n",
    "earlystop.py": "from hostler.earlystop import EarlyStopping\n",
}

Read = Callable[[str], "str | None"]  # a file of the project, by its path from there


@dataclass(frozen=True)
class ImportedFolder:
    """`project` is hostler.yaml; `files` are others that are written; `hidden` stay out of snapshots."""

    project: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    archive: int = 3


def is_it(names: set[str]) -> bool:
    return SEARCH in names and bool(names & {STARTUP, QUICK, MACHINES})


def read(
    texts: Mapping[str, str],
    configs: Any,
    name: str,
    inside: str,
    of_project: Read,
    *,
    sections: int,
    store: str,
) -> ImportedFolder:
    """`texts` are its files, `configs` its machines as data; `inside` is where it lies in the project."""
    begun = _read(texts, inside)
    quick = read_quickstart(texts[QUICK]) if QUICK in texts else QuickStart()
    script = _script(begun)
    there = of_project(script) if script else None
    text = None if begun.git else there
    project: dict[str, Any] = {"name": name, **_begin(begun), **_metric(there)}
    if store or quick.bucket:
        project["store"] = store or f"gs://{quick.bucket}/{slug(name)}"
    fleet, said = _fleet(configs, quick, sections)
    files = {} if begun.git else _files(begun, script, text)
    if SETUP in files:
        project["setup"] = ["bash", SETUP]
    elif lines := _lines_of_git(begun, script):
        project["setup"] = ["bash", "-c", "; ".join(["set -e", *lines])]
    if quick.data:
        project["data"] = {"data": _data(_from_here(inside, quick.data), begun)}
    token = _from_here(inside, quick.token) if quick.token else _below(inside, TOKEN)
    notes = [*begun.notes, *quick.notes, *said, *_notes(begun, quick, project, inside, texts, script, text)]
    if begun.token and (of_project(token) or "").strip():
        cat = f"$(cat {shlex.quote(token)})"
        notes.append(f'export {begun.token}="{cat}" before a sweep: hostler writes it to no file')
    return ImportedFolder(
        {**project, **fleet},
        files,
        tuple(_hidden(texts, quick, inside, project)),
        tuple(dict.fromkeys(notes)),
        quick.archive,
    )


def _read(texts: Mapping[str, str], inside: str) -> Startup:
    """A script that is run as it is and held secrets is run from a copy without them."""
    begun = startup.read(texts[STARTUP], _below(inside, STARTUP)) if STARTUP in texts else Startup()
    return replace(begun, command=("bash", WHOLE)) if begun.whole else begun


def _hidden(
    texts: Mapping[str, str], quick: QuickStart, inside: str, project: Mapping[str, Any]
) -> Iterator[str]:
    """Files that stay out of snapshots: secrets, and data, which goes another way."""
    if TOKEN in texts:
        yield _below(inside, TOKEN)
    if quick.token:
        yield _from_here(inside, quick.token)
    if quick.data:
        yield project["data"]["data"]["path"]
    yield from (_below(inside, name) for name in _holding(texts))


def _data(path: str, begun: Startup) -> dict[str, str]:
    """Data where clouDL's scripts look for it: beside the folder that they run in. A file keeps its name."""
    words = begun.command
    folder = words[2] if words[:2] == ("env", "-C") else ""
    name = PurePosixPath(path).name if PurePosixPath(path).suffix else ""
    return {"path": path, "at": posixpath.normpath(posixpath.join(folder, BESIDE, name))}


def _holding(texts: Mapping[str, str]) -> list[str]:
    """Files that hold secrets among others."""
    return [name for name, text in sorted(texts.items()) if name != TOKEN and startup.holds_secrets(text)]


def _begin(begun: Startup) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if begun.command:
        made["command"] = list(begun.command)
    made["style"] = "none"  # the Manager hands the parameters over
    if begun.git:
        made["git"] = begun.git
    if begun.token:
        made["git_token"] = begun.token
    if begun.requirements:
        made["python"] = {"requirements": begun.requirements}
    if begun.conda_env:
        made["python"] = {"conda_env": begun.conda_env}
    if begun.env:
        made["env"] = dict(begun.env)
    if begun.secrets:
        made["secrets"] = list(begun.secrets)
    return made


def _script(begun: Startup) -> str:
    """The Python file that is trained with, from the project on."""
    words = list(begun.command)
    folder = words[2] if words[:2] == ["env", "-C"] else ""
    words = shell.words(words[-1]) if words[-3:-1] == ["bash", "-c"] else words
    found = next((word for word in words if word.endswith(".py")), "")
    return str(PurePosixPath(folder) / found) if found else ""


def _metric(text: str | None) -> dict[str, str]:
    """The metric the script compares by, where it names one plainly."""
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError):
        return {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "set_compare_goal":
            nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
            words = [one.value for one in nodes if isinstance(one, ast.Constant)]
            if len(words) == 2 and isinstance(words[0], str) and words[1] in ("min", "max"):
                return {"metric": words[0], "goal": str(words[1])}
    return {}


def _files(begun: Startup, script: str, text: str | None) -> dict[str, str]:
    """The setup, and clouDL's own modules, so that scripts need not change their imports."""
    files = dict[str, str]()
    for name in dict.fromkeys(_IMPORT.findall(text or "")):
        files |= {str(PurePosixPath(script).parent / name / one): body for one, body in _SHIM.items()}
    if begun.whole:
        files[WHOLE] = begun.whole
    if begun.setup:
        files[SETUP] = "\n".join(["#!/usr/bin/env bash", "set -e", *begun.setup, ""])
    return files


def _lines_of_git(begun: Startup, script: str) -> list[str]:
    """The same where machines fetch the code themselves, which has no file of ours; what is there stays."""
    if not begun.git or not script:
        return list(begun.setup)
    place = shlex.quote(str(PurePosixPath(script).parent / "clouDL"))
    made = [f"printf '%s' {shlex.quote(body)} > {place}/{one}" for one, body in _SHIM.items()]
    return [*begun.setup, f"[ -e {place} ] || {{ mkdir -p {place}; {'; '.join(made)}; }}"]


def _fleet(configs: Any, quick: QuickStart, sections: int) -> tuple[dict[str, Any], list[str]]:
    found = machines.recognise(configs, MACHINES) if configs is not None else None
    if found is None:
        return {}, [] if configs is None else [f"{MACHINES} has no zones: write a fleet"]
    ((name, fleet),) = found.project["fleets"].items()
    more: dict[str, Any] = {"workers": quick.workers or max(1, sections)}
    more |= {"project": quick.project} if quick.project else {}
    notes = [*found.notes]
    if not quick.project:
        notes.append(
            "project: `project` of the fleet, or GOOGLE_CLOUD_PROJECT, is quick_start.sh's second word"
        )
    if "image" in fleet:
        notes.append("image: workers need Python 3.10 or newer on it; without it they get one that has that")
    return {"fleet": name, "fleets": {name: {**fleet, **more}}}, notes


def _notes(
    begun: Startup,
    quick: QuickStart,
    project: Mapping[str, Any],
    inside: str,
    texts: Mapping[str, str],
    script: str,
    text: str | None,
) -> list[str]:
    notes = [
        f"{_below(inside, name)} holds secrets: it stays out of what is uploaded" for name in _holding(texts)
    ]
    if "store" not in project:
        notes.append("store: a bucket that the VMs reach, like gs://PROJECT-BUCKET/NAME (--store)")
    if "metric" not in project:
        notes.append("metric: nothing here says what is compared; name it, and its goal, for best and report")
    if script and text is None and not begun.git:
        notes.append(f"{script} is not here: put it beside hostler.yaml")
    if quick.data:
        notes.append(f"data: at {BESIDE} of the script's folder, as clouDL had it, and at $HOSTLER_DATA/data")
        if PurePosixPath(quick.data).suffix:
            notes.append(
                f"data: {PurePosixPath(quick.data).name} is in {BESIDE} as it is: archives stay packed"
            )
    return notes


def _below(inside: str, name: str) -> str:
    return str(PurePosixPath(inside) / name)


def _from_here(inside: str, path: str) -> str:
    """quick_start.sh is started beside the folder, and names files from there."""
    parts = PurePosixPath(path).parts
    return (
        _below(inside, str(PurePosixPath(*parts[1:]))) if parts[:1] == (FOLDER,) else str(PurePosixPath(path))
    )


# clouDL's `quick_start.sh`: how many workers, how many models are archived, which data and bucket. Pure.


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


def read_quickstart(text: str) -> QuickStart:
    """Its modes are branches of one script: what each is called with is read, wherever it stands."""
    joined = text.replace("\r\n", "\n").replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if not line.strip().startswith("#")]
    known = _assigned(lines)
    calls = [
        shell.words(shell.filled(line, known)) for line in lines if re.match(r"clouDL(_analyze)?\s", line)
    ]
    plain = [words for words in calls if words and words[0] == "clouDL"]
    places = [words[1:3] for words in plain if len(words) > 2 and not any("$" in word for word in words[1:3])]
    project, bucket = places[0] if places else ("", "")
    named = {**_cluster(plain), "hyperparameters.json": _of(plain, "--hyparams", "-p")}
    others = [
        f"quick_start.sh names {path}, and {usual} is what was read: rename it and import again"
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
        for word in shell.split(line):
            given = shell.assignment(word)
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
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def _others(calls: list[list[str]]) -> list[str]:
    options = [word for words in calls for word in words if re.match(r"--[a-z]", word)]
    return [
        f"quick_start.sh: {one} is not carried over" for one in dict.fromkeys(options) if one not in _KNOWN
    ]
