"""A script that a VM runs when it is ready: where the code comes from, what is set up, what is trained. Pure.

The last command that runs a program is the training; what stands before it is the setup. clouDL's
`user_startup.sh` is such a script. Values that nobody else should know are in nothing that comes out of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from hostler.spec.formats import private, shell, withheld

_RUNS = re.compile(r"(\S*/)?(python[\d.]*|torchrun|accelerate|Rscript|julia|bash|sh|\./\S+)$")
_OPTIONS = ("-b", "--branch", "--depth", "-o", "--origin", "-c", "--config")
_FOR_SHELL = ("source", ".", "module", "ulimit")  # what a shell is after them, the training needs
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)=")
_TOKEN = re.compile(r"(https?://)(?:[^/@]*:)?\$\{?(\w+)\}?@")


@dataclass(frozen=True)
class Startup:
    """`command` is empty where none was found."""

    command: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()  # lines of shell
    env: dict[str, str] = field(default_factory=dict)
    requirements: str = ""
    conda_env: str = ""
    git: str = ""  # url@ref
    token: str = ""  # the variable with the token for it
    secrets: tuple[str, ...] = ()  # variables whose values it holds, and which are carried over by name alone
    notes: tuple[str, ...] = ()
    whole: str = ""  # where all of it is run and it held secrets: without them


def holds_secrets(text: str) -> bool:
    """Whether a value that nobody else should know stands in it."""
    found = withheld.withhold(text)
    return bool(found.names or found.left) or found.text != text


def read(text: str, name: str) -> Startup:
    """`name` is its path from the project on: a script that cannot be taken apart is run as it is."""
    clean = withheld.withhold(text)
    found = shell.commands(clean.text)
    if found is None:
        return _as_it_is(clean, text, name)
    found = [part for one in found for part in shell.apart(one)]
    at = max((n for n, one in enumerate(found) if _runs(one)), default=None)
    made = _before(found if at is None else found[:at], clean)
    command, notes = _training(found[at], made) if at is not None else ((), [])
    made.said += notes
    if at is None:
        made.said.append(f"{name} runs no program: name the `command`")
    else:
        made.said += [
            f"not carried over, since it comes after the training: {one}" for one in found[at + 1 :]
        ]
    secrets = _needed(clean, made, command)
    lines = [
        _told(one, clean)
        for one in dict.fromkeys((*secrets, *([made.token] if made.token in clean.names else [])))
    ]
    return Startup(
        command,
        made.setup,
        made.env,
        made.requirements,
        made.conda_env,
        made.git,
        made.token,
        secrets,
        tuple(_kept([*lines, *made.said, *_doubts("\n".join(made.setup), command)], secrets)),
    )


def read_inline(text: str, name: str) -> Startup:
    """A script that stands inside the file `name`: where it cannot be taken apart, a shell gets all of it."""
    begun = read(text, name)
    if begun.command != ("bash", name):
        return begun
    if withheld.withhold(text).left:
        return replace(begun, command=(), notes=(*begun.notes, f"{name}: name the `command`"))
    return replace(begun, command=("bash", "-c", begun.whole or text), whole="")


def _as_it_is(clean: withheld.Withheld, text: str, name: str) -> Startup:
    note = f"{name} is more than a list of commands: each run runs all of it"
    notes = [note, *_used(clean.text), *(_told(one, clean) for one in clean.names), *_doubts(clean.text)]
    if clean.left:
        notes.append(
            f"{name} holds a secret ({', '.join(clean.left)}) that stays in it: take it out yourself"
        )
    whole = clean.text if clean.text != text and not clean.left else ""
    names = tuple(clean.names)
    kept = tuple(_kept(notes, names))
    return Startup(("bash", name), secrets=names, notes=kept, whole=whole)


def _needed(clean: withheld.Withheld, made: _Before, command: Sequence[str]) -> tuple[str, ...]:
    """Secrets that are assigned, and those that what is carried over speaks of."""
    spoken = shell.unknown("\n".join([*made.setup, *command]))
    return tuple(dict.fromkeys([*made.secrets, *(name for name in clean.names if name in spoken)]))


def _told(name: str, clean: withheld.Withheld) -> str:
    where = (
        f" ({clean.names[name]})"
        if clean.names.get(name, f"the value of {name}") != f"the value of {name}"
        else ""
    )
    return f"{name}: its value{where} is not carried over: export {name}=... before a sweep"


def _doubts(text: str, command: Sequence[str] = ()) -> list[str]:
    return [
        f"{one}: if that is a secret, put it into `secrets`: files and `command` are kept in the store"
        for one in withheld.doubtful("\n".join([text, shlex.join(command)]))
    ]


@dataclass
class _Before:
    """The facts known so far, command by command."""

    lines: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    requirements: str = ""
    conda_env: str = ""
    git: str = ""
    token: str = ""
    folder: str = ""  # below the code; with a \0 in front: the code that was fetched, from outside
    secrets: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)  # for the training's shell, too: `export NAME=$(date)`
    said: list[str] = field(default_factory=list)

    @property
    def below(self) -> str:
        """The folder of the code that it is in; code that was fetched and not entered is that folder too."""
        return "" if self.folder.startswith("\0") else self.folder

    @property
    def setup(self) -> tuple[str, ...]:
        return tuple(self.lines)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.said)


def _before(commands: Sequence[str], clean: withheld.Withheld) -> _Before:
    made = _Before()
    for command in commands:
        words, given, named = shell.words(command), shell.assignment(command), _ASSIGNS.match(command)
        plain = given is not None and private.is_plain(given[1])
        if named and (named[1] in clean.names or (private.is_variable(named[1]) and not plain)):
            made.secrets.append(named[1])
        elif given and not shell.unknown(command) and not shell.is_computed(command):
            made.env[given[0]] = given[1]
        elif named:
            made.computed.append(f"export {command}")
            made.lines.append(f"export {command}")
            made.said += _used(command)
        elif _logs_in(words):
            made.secrets.append("WANDB_API_KEY")
        elif words[:2] == ["git", "clone"] and not made.git:
            _clone(made, words[2:])
        elif words[:1] == ["cd"] and len(words) == 2:
            _enter(made, words[1])
        elif (name := _requirements(words)) and not made.requirements:
            made.requirements = str(PurePosixPath(made.below) / name)
        elif words[:2] in (["conda", "activate"], ["source", "activate"]) and len(words) == 3:
            made.conda_env = words[2]
        elif words[:1] and words[0] in _FOR_SHELL:
            made.computed.append(command)
            below = shlex.quote(made.below)
            made.lines.append(f"cd {below} && {command} && cd - > /dev/null" if made.below else command)
            made.said += _used(command)
        else:
            made.lines.append(f"(cd {shlex.quote(made.below)} && {command})" if made.below else command)
            made.said += _used(command)
    return made


def _clone(made: _Before, words: Sequence[str]) -> None:
    """`git:` of it: machines fetch the code themselves."""
    ref, plain, rest = "", list[str](), list(words)
    while rest:
        one = rest.pop(0)
        if one in _OPTIONS and rest:
            ref = rest.pop(0) if one in ("-b", "--branch") else (rest.pop(0), ref)[1]
        elif not one.startswith("-"):
            plain.append(one)
    if not plain:
        return
    url = plain[0]
    if match := _TOKEN.match(url):
        made.token, url = match[2], match[1] + url[match.end() :]
    made.git = f"{url}@{ref}" if ref else url
    made.folder = "\0" + (plain[1] if len(plain) > 1 else PurePosixPath(url).name.removesuffix(".git"))


def _enter(made: _Before, folder: str) -> None:
    """A folder of the code; the code itself where that was just fetched."""
    inside = made.folder.removeprefix("\0")
    if made.folder.startswith("\0"):
        path = PurePosixPath(folder)
        own = path.parts[:1] == PurePosixPath(inside).parts[-1:]
        made.folder = str(PurePosixPath(*path.parts[1:])) if own and len(path.parts) > 1 else ""
        return
    made.folder = str(PurePosixPath(inside) / folder) if folder not in (".", "./") else inside


def _requirements(words: Sequence[str]) -> str:
    """The file of a `pip install -r FILE`, and nothing else."""
    own = ("sudo", "-q", "--quiet", "--user", "-U", "--upgrade", "--system")
    plain = [word for word in words if word not in own]
    plain = plain[1:] if plain[:2] == ["uv", "pip"] else plain
    if plain[:2] == ["-m", "pip"] or (plain[:1] and re.fullmatch(r"(\S*/)?python[\d.]*", plain[0])):
        plain = plain[2:] if plain[1:3] == ["-m", "pip"] else plain
    pip = plain[:1] and re.fullmatch(r"(\S*/)?pip[\d.]*", plain[0])
    return plain[3] if pip and plain[1:3] == ["install", "-r"] and len(plain) == 4 else ""


def _runs(command: str) -> bool:
    words = [word for word in shell.words(_as_user(command)) if word not in ("sudo", "nohup", "time")]
    if not words or not _RUNS.match(words[0]):
        return False
    return words[1:3] != ["-m", "pip"] and words[1:2] != ["--version"]


def _logs_in(words: Sequence[str]) -> bool:
    """By a key that the library finds in its variable anyway."""
    return words[:2] == ["wandb", "login"] and "$WANDB_API_KEY" in words[2:]


def _training(command: str, made: _Before) -> tuple[tuple[str, ...], list[str]]:
    command = _as_user(command)
    plain = shell.filled(shell.without_output(command), made.env)
    notes = ["what it prints is the run's log"] if plain != shell.filled(command, made.env) else []
    words = [word for word in shell.words(plain) if word != "sudo"]
    if made.computed:
        notes += _used(plain)
        words = ["bash", "-c", "; ".join([*made.computed, plain])]
    elif not shell.is_plain(plain):
        notes += _used(plain)
        words = ["bash", "-c", plain]
    return tuple(["env", "-C", made.below, *words] if made.below else words), notes


def _as_user(command: str) -> str:
    """Without whose it is: a run is its worker's."""
    return re.sub(r"^sudo[ \t]+(?:-[EHn]+[ \t]+)*-u[ \t]*\S+[ \t]+(?:-[EHn]+[ \t]+)*", "", command)


def _kept(notes: Sequence[str], secrets: Sequence[str]) -> list[str]:
    """A variable that is asked for as a secret is set."""
    return [note for note in notes if note not in _used(" ".join(f"${name}" for name in secrets))]


def _used(text: str) -> list[str]:
    """Variables that the other tool had set."""
    known = ("BUCKET_NAME", "TOKEN", "NAME", "ZONE")
    return [
        f"${name} was set by the other tool, and is not set here"
        for name in dict.fromkeys(shell.unknown(text))
        if name in known
    ]
