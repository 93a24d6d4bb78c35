"""The command of `hostler run WORDS`: a script gets its interpreter, a program stays as it is."""

from __future__ import annotations

import os
import re
import reprlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from hostler.errors import MissingError, UsageError
from hostler.spec.nearest import did_you_mean

NOTEBOOK = ".ipynb"
NOTEBOOK_MODULE = "hostler.sdk.notebook"
INTERPRETERS = {".py": "python", ".sh": "bash"}
# Start a script that is among their words; may exist only in the environment the run gets on its machine.
LAUNCHERS = frozenset(
    {"python", "python3", "bash", "sh", "torchrun", "accelerate", "deepspeed", "mpirun", "srun"}
)
# Start a launcher, or a script of their own accord.
_WRAPPERS = frozenset(
    {"env", "nice", "nohup", "time", "timeout", "numactl", "taskset", "stdbuf", "xvfb-run", "ipython", "zsh"}
    | {
        "uv",
        "poetry",
        "pdm",
        "pipenv",
        "hatch",
        "pixi",
        "conda",
        "mamba",
        "micromamba",
        "horovodrun",
        "mpiexec",
    }
    | {"apptainer", "singularity"}
)
_LAUNCHING = frozenset(  # modules that start a script among the words behind them
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "cProfile", "pdb"}
)
_PYTHON = re.compile(r"(?:python|pypy)\d?(?:\.\d+)?t?")
_VARIABLE = re.compile(r"\w+=")
_LOOKED_AT = 2000  # files, for a suggestion


def command_for(words: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command of `hostler run WORDS` in a folder; paths stay as given."""
    if not words:
        raise UsageError("nothing to run", hint="like: hostler run train.py --lr 0.1")
    first, rest = words[0], tuple(words[1:])
    path = folder / first
    interpreter = INTERPRETERS.get(path.suffix)
    if path.suffix == NOTEBOOK and os.path.isfile(path):
        return _notebook(path, first, rest)
    if interpreter and os.path.isfile(path):  # a name too long for any file is no error
        return (interpreter, _as_path(first) if first.startswith("-") else first, *rest)
    if os.path.isfile(path) and os.access(path, os.X_OK):
        return (first if "/" in first else _as_path(first), *rest)
    if "/" not in first and (first in LAUNCHERS or shutil.which(first)):
        return (first, *rest)
    if os.path.isfile(path):
        raise UsageError(
            f"{first} is not a program", hint="chmod +x it, or name what runs it: hostler run PROGRAM FILE"
        )
    if os.path.isdir(path):
        raise UsageError(f"{first} is a folder", hint="name a script in it")
    if first.startswith("-"):
        raise UsageError(
            f"hostler run has no option {first}",
            hint="hostler run --help lists them; the script's own follow the script",
        )
    near = suggestion(first, folder) or "name a script of this folder, or a program on PATH"
    raise MissingError(f"no script or program {reprlib.repr(first)} in {folder}", hint=near)


def startable(words: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command of a file: a script that does not start by itself, or a notebook, gets what runs it."""
    path = folder / words[0] if words else folder
    known = path.suffix in (*INTERPRETERS, NOTEBOOK) and os.path.isfile(path)
    return command_for(words, folder) if known and not os.access(path, os.X_OK) else tuple(words)


def check_notebook(words: Sequence[str], folder: Path) -> None:
    """Raise UsageError where a command gives a notebook of the folder parameters that it does not take."""
    at = next((n for n, word in enumerate(words) if word == NOTEBOOK_MODULE), None)
    if at is not None and os.path.isfile(path := folder / "".join(words[at + 1 : at + 2])):
        _notebook(path, words[at + 1], words[at + 2 :])


def _notebook(path: Path, name: str, words: Sequence[str]) -> tuple[str, ...]:
    """The command of a notebook, once it is known to take these parameters."""
    from hostler.spec import notebook  # most scripts are none

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    notebook.injected(notebook.read(text, name), notebook.parameters(words), name)
    return ("python", "-m", NOTEBOOK_MODULE, name, *words)


def script_at(words: Sequence[str]) -> int | None:
    """Which word of a command names its script: the first, or the first such word after a launcher."""
    if not words or not starts_scripts(words[0]):
        return 0 if words and ("/" in words[0] or Path(words[0]).suffix in INTERPRETERS) else None
    for at, word in enumerate(words[1:], start=1):
        if _is_code(words, at):
            return None
        if _is_script(word) and "{" not in word:
            return at
    return None


def in_project(words: Sequence[str], folder: Path, root: Path) -> tuple[tuple[str, ...], str]:
    """The words with the script's path as the run will need it, and what there is to say about it.

    An absolute path into the project becomes relative, because runs have copies of the project; a script
    outside of it is used where it is.
    """
    at = script_at(words)
    path = folder / words[at] if at is not None else None
    if at is None or path is None or not os.path.isfile(path):
        return tuple(words), ""
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    if os.path.commonpath([real_root, real]) != real_root:
        placed, note = os.path.abspath(path), ""
        if path.suffix in INTERPRETERS or not words[at].startswith("/"):  # not for a program of the system
            note = f"{words[at]} is outside {root}: it is used where it is, not as part of the code snapshot"
    else:
        lexical = os.path.abspath(path)
        inside = lexical if os.path.commonpath([str(root), lexical]) == str(root) else real
        placed, note = os.path.relpath(inside, folder) if words[at].startswith("/") else words[at], ""
    return (*words[:at], placed, *words[at + 1 :]), note


def script_args(argv: Sequence[str]) -> int:
    """Where the script's own arguments begin in a command."""
    if not argv or not starts_scripts(argv[0]):
        return min(1, len(argv))
    for at, word in enumerate(argv[1:], start=1):
        if _is_script(word):
            return at + 1
        if _is_code(argv, at) and at + 1 < len(argv):
            return at + 2
    return 1


def starts_scripts(program: str) -> bool:
    """Whether a program starts a script that is among its words."""
    name = os.path.basename(program)
    return name in LAUNCHERS or name in _WRAPPERS or _PYTHON.fullmatch(name) is not None


def _is_script(word: str) -> bool:
    """Whether a word names a script; `SETUP=a.sh`, a variable, does not."""
    return Path(word).suffix in INTERPRETERS and not _VARIABLE.match(word)


def _is_code(words: Sequence[str], at: int) -> bool:
    """Whether a module or a text is run here, and no script behind it."""
    module = words[at + 1] if at + 1 < len(words) else ""
    return words[at] == "-c" or (words[at] == "-m" and module not in _LAUNCHING)


def suggestion(word: str, folder: Path) -> str:
    """A file of the folder that may have been meant, as a hint."""
    files = list(_files(folder))
    same = [file for file in files if os.path.basename(file) == os.path.basename(word)]
    return f"did you mean {same[0]!r}?" if same else did_you_mean(word, files)


def _as_path(name: str) -> str:
    return f"./{name}"


def _files(folder: Path) -> Iterator[str]:
    """Files of a folder and those inside it, as relative paths; hidden folders and deep ones left out."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        relative = os.path.relpath(parent, folder)
        deep = relative.count(os.sep) >= 2
        folders[:] = [] if deep else sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            yield os.path.normpath(os.path.join(relative, name))
            seen += 1
            if seen >= _LOOKED_AT:
                return
