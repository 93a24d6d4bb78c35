"""A shell script that starts a VM to train on, by gcloud, with the trainer's arguments as metadata. Pure.

The VM's options become a fleet. Its startup script, which reads the arguments back from the metadata server,
becomes the command; without one, what `gcloud compute ssh` runs there does. What the script itself takes as
arguments nobody knows here: that is said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hostler.spec.formats import private, shell, startup, withheld
from hostler.spec.formats.machines import Machines
from hostler.spec.names import slug

TOOL = "burst training"
_CREATE = re.compile(r"gcloud\s+(?:(?:alpha|beta)\s+)?compute\s+(?:instances|instance-templates)\s+create\s")
_SSH = re.compile(r"gcloud\s+(?:(?:alpha|beta)\s+)?compute\s+ssh\s")
_OFF = re.compile(  # what ends the VM when all is done, unless somebody wants it
    r"^[ \t]*if\b[^\n]*\n(?:[ \t]*then\n)?\s*(?:sudo\s+)?(?:shutdown|poweroff|halt)\b[^\n]*\n\s*fi\b",
    re.MULTILINE,
)
_FROM_METADATA = re.compile(
    r"^\s*(?:export\s+)?(\w+)=\$\(curl\b.*?/attributes/([\w-]+).*\)\s*$", re.MULTILINE
)
_FLAGS = ("--preemptible", "--no-restart-on-failure", "--quiet", "-q", "--async", "--no-address")
_BY_ITSELF = (
    *("--scopes", "--maintenance-policy", "--metadata", "--metadata-from-file", "--preemptible"),
    *("--provisioning-model", "--image-project", "--quiet", "-q", "--no-restart-on-failure"),
)

Read = Callable[[str], "str | None"]  # a file beside it, by its name


def is_it(text: str) -> bool:
    return any(_CREATE.search(line) for line in _lines(text))


def read(text: str, beside: Read) -> Machines:
    lines = _lines(text)
    known = _known(lines)
    line = next(one for one in lines if _CREATE.search(one))
    options, names = _options(shell.words(shell.filled(line[_CREATE.search(line).end() :], known)))  # type: ignore[union-attr]
    notes = [f"{name} is an argument of the script: put it where it belongs" for name in _arguments(lines)]
    fleet = _fleet(options, notes)
    told = _pairs(options.get("--metadata", ""))
    metadata = {key: value for key, value in told.items() if not _is_private(key, value)}
    files = _pairs(options.get("--metadata-from-file", ""))
    secret = [key for key in told if key not in metadata]
    typed = "" if "startup-script" in files else _typed_there(lines, known)
    if typed:
        project, more = _commands(startup.read_inline(typed, "gcloud compute ssh"), [], [])
        more += [f"metadata {key}: its value is not carried over" for key in secret]
    else:
        project, more = _trained(files, metadata, secret, beside)
    name = slug(names[0]) if names and "$" not in names[0] else "burst"
    notes += [*more, "the model: what is in $HOSTLER_OUTPUT_DIR is kept with the run"]
    made = {**project, "fleet": name, "fleets": {name: fleet}}
    hidden = [name for name in files.values() if startup.holds_secrets(beside(name) or "")]
    own = startup.holds_secrets(text) or len(metadata) < len(told)
    return Machines(TOOL, made, tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(hidden)), own)


def _is_private(key: str, value: str) -> bool:
    found = withheld.withhold(f"{key}={value}")
    return bool(found.names or (private.is_variable(key) and not private.is_plain(value)))


def _lines(text: str) -> list[str]:
    """Its lines without comments, each in one piece."""
    return [line.strip() for line in _joined(text).splitlines() if not line.strip().startswith("#")]


def _joined(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\\\n", " ")


def _known(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        given = shell.assignment(line)
        if given and "$" not in (value := shell.filled(given[1], found)) and not shell.is_computed(value):
            found[given[0]] = value
    return found


def _arguments(lines: list[str]) -> list[str]:
    """Variables that hold what the script is called with."""
    found = [shell.assignment(line) for line in lines]
    return [given[0] for given in found if given and re.fullmatch(r"\$\{?\d+\}?", given[1])]


def _typed_there(lines: list[str], known: Mapping[str, str]) -> str:
    """Commands that `gcloud compute ssh` runs on the VM, line by line; what is copied there is not one."""
    found = []
    for line in lines:
        if called := _SSH.search(line):
            words = shell.words(shell.filled(line[called.end() :], known))
            if "--" in words:
                found.append(shlex.join(words[words.index("--") + 1 :]))
            else:
                found.append(_options(words)[0].get("--command", ""))
    return "".join(f"{one}\n" for one in found if one)


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their values, and what is none."""
    found, names, rest = dict[str, str](), list[str](), list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            names.append(word)
        elif equals or name in _FLAGS or not rest or rest[0].startswith("-"):
            found[name] = value
        else:
            found[name] = rest.pop(0)
    return found, names


def _fleet(options: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    spot = "--preemptible" in options or options.get("--provisioning-model", "").upper() == "SPOT"
    fleet: dict[str, Any] = {"backend": "gce", "spot": spot, "workers": 1}
    plain = {"--machine-type": "machine", "--boot-disk-size": "disk", "--image": "image"}
    plain |= {"--service-account": "service_account", "--project": "project", "--network": "network"}
    plain |= {"--image-family": "family", "--subnet": "subnetwork"}
    for option, key in plain.items():
        value = options.get(option, "")
        if "$" in value:
            notes.append(f"{key}: {value} is not known here; write it into the fleet")
        elif value:
            fleet[key] = value
    if "family" in fleet and options.get("--image-project"):
        fleet["family"] = f"{options['--image-project']}/{fleet['family']}"
    if "$" not in options.get("--zone", "$"):
        fleet["zones"] = [options["--zone"]]
    else:
        notes.append("zones: none is named; write one into the fleet, like zones: [us-central1-a]")
    if gpu := _pairs(options.get("--accelerator", "")):
        model = gpu.get("type", "").lower().removeprefix("nvidia-").removeprefix("tesla-").upper()
        fleet["gpu"] = f"{model}:{gpu.get('count', '1')}"
    others = set(options) - set(plain) - set(_BY_ITSELF) - {"--zone", "--accelerator"}
    notes += [f"{one}: not carried over" for one in sorted(others)]
    return fleet


def _trained(
    files: Mapping[str, str], metadata: Mapping[str, str], hidden: Sequence[str], beside: Read
) -> tuple[dict[str, Any], list[str]]:
    """Keys of hostler.yaml, from what the VM runs; its arguments filled in."""
    name = files.get("startup-script", "")
    text = beside(name) if name else None
    if text is None:
        said = f"{name} is not here" if name else "it has no startup script"
        return {}, [
            f"{said}: name the `command`",
            *(f"metadata {key}: its value is not carried over" for key in hidden),
            *(f"metadata {k}={v}: not used" for k, v in metadata.items()),
        ]
    told = {match[1]: match[2] for match in _FROM_METADATA.finditer(_joined(text))}
    known = {variable: metadata[key] for variable, key in told.items() if key in metadata}
    plain = _OFF.sub("", _FROM_METADATA.sub("", _joined(text)))
    begun = startup.read(shell.filled(plain, known), name)
    used = set(told.values())
    secrets = [variable for variable, key in told.items() if key in hidden]
    notes = [
        f"{secret}: its value (metadata) is not carried over: export {secret}=... before a sweep"
        for secret in secrets
    ]
    notes += [f"metadata {key}: its value is not carried over" for key in hidden if key not in used]
    notes += [
        f"metadata {key}={value}: not used by {name}" for key, value in metadata.items() if key not in used
    ]
    if begun.command == ("bash", name) and told:
        notes.append(
            f"{name} asks for metadata ({', '.join(told.values())}), which runs do not have: edit it"
        )
    return _commands(begun, secrets, notes)


def _commands(
    begun: startup.Startup, secrets: Sequence[str], notes: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Keys of hostler.yaml for what a VM runs; variables without a value are named."""
    notes = [
        *notes,
        *begun.notes,
        *(f"setup: {line}: not carried over, the code comes with each run" for line in begun.setup),
    ]
    made: dict[str, Any] = {"command": list(begun.command)} if begun.command else {}
    made |= {"git": begun.git} if begun.git else {}
    made |= {"git_token": begun.token} if begun.git and begun.token else {}
    made |= {"env": begun.env} if begun.env else {}
    spare = set(shell.unknown("\n".join(begun.setup))) - set(shell.unknown("\n".join(begun.command)))
    every = [one for one in dict.fromkeys([*secrets, *begun.secrets]) if one not in spare]
    notes = [one for one in notes if one.partition(":")[0] not in spare]
    unset = dict.fromkeys(shell.unknown("\n".join(begun.command)))
    notes += [
        f"${one} in the command is not set here: put its value there, or into `env`"
        for one in unset
        if one not in (*every, *begun.env) and not any(note.startswith(f"${one} ") for note in notes)
    ]
    made |= {"secrets": every} if every else {}
    made |= {"python": {"requirements": begun.requirements}} if begun.requirements else {}
    made |= {"python": {"conda_env": begun.conda_env}} if begun.conda_env else {}
    return made, notes


def _pairs(text: str) -> dict[str, str]:
    found = [word.partition("=") for word in text.split(",") if "=" in word]
    return {key: value for key, _, value in found}
