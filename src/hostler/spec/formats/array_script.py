"""A job script of Slurm with `#SBATCH` lines, as a fleet, and a sweep over its array's tasks. Pure.

The script itself stays the training where it is more than one plain command: each run gets the number of its
task as `SLURM_ARRAY_TASK_ID`, as before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from hostler.errors import SpecError
from hostler.spec.formats import shell, startup, withheld
from hostler.spec.formats.machines import Machines
from hostler.spec.names import slug

TASK = "task"  # the parameter that is a task's number
MOST = 100_000  # tasks that a sweep file names one by one
_LINE = re.compile(r"^#SBATCH[ \t]+(.*?)[ \t]*(?:[ \t]#.*)?$", re.MULTILINE)
_ID = re.compile(r"\$\{?SLURM_ARRAY_TASK_ID\}?")
_SHORT = {"a": "array", "p": "partition", "A": "account", "q": "qos", "C": "constraint", "t": "time"}
_SHORT |= {"c": "cpus-per-task", "J": "job-name", "o": "output", "e": "error", "N": "nodes", "n": "ntasks"}
_KEYS = ("partition", "account", "qos", "constraint")
_OURS = ("output", "error", "job-name", "requeue", "open-mode", "signal")  # hostler sets these itself


def is_it(text: str) -> bool:
    return _LINE.search(text) is not None


def read(text: str, name: str) -> Machines:
    """SpecError for an array or a time that Slurm would not take."""
    asked, notes = dict[str, str](), list[str]()
    fleet: dict[str, Any] = {"backend": "slurm"}
    for option, value in _options(text, name):
        asked[option] = value
    fleet |= {key: asked[key] for key in _KEYS if asked.get(key)}
    if asked.get("time", "").upper() in ("UNLIMITED", "INFINITE"):
        notes.append(f"#SBATCH --time={asked['time']}: no time is asked for: the partition's limit counts")
    elif asked.get("time"):
        fleet["time"] = f"{_minutes(asked['time'], name)}m"
    tasks, at_once = _array(asked["array"], name) if "array" in asked else ([], 0)
    fleet |= {"workers": at_once or len(tasks)} if tasks else {}
    resources = _resources(asked, notes)
    known = (*_KEYS, *_OURS, "time", "array", "cpus-per-task", "mem", "gres", "gpus", "nodes", "ntasks")
    notes += [f"#SBATCH --{key}: not carried over" for key in asked if key not in (*known, "gpus-per-node")]
    notes += [f"#SBATCH --{key}: hostler sets it itself" for key in asked if key in _OURS]
    begun = _begun(text, name, bool(tasks), fleet)
    notes += begun.notes
    project: dict[str, Any] = {"command": list(begun.command)} if begun.command else {}
    project |= {"secrets": list(begun.secrets)} if begun.secrets else {}
    project |= {"resources": resources} if resources else {}
    label = slug(asked.get("partition") or "cluster")
    project |= {"fleet": label, "fleets": {label: fleet}}
    parameters = {TASK: tasks if len(tasks) > 1 else tasks[0]} if tasks else {}
    own = startup.holds_secrets(text)
    return Machines("Slurm", project, tuple(dict.fromkeys(notes)), hides_itself=own, parameters=parameters)


def _options(text: str, where: str) -> Iterator[tuple[str, str]]:
    for line in _LINE.findall(text):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            said = f"#SBATCH {line}: a quote is not closed"
            raise SpecError(said, 'close it, or write "..." around the value', where=where) from None
        while words:
            word = words.pop(0)
            option, equals, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                option, value, equals = _SHORT.get(word[1:2], word[1:2]), word[2:], word[2:]
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            yield option, value


def _array(text: str, where: str) -> tuple[list[int], int]:
    """Numbers of `0-9:3,12%4`, and how many run at a time; 0 for no limit."""
    ranges, _, limit = text.partition("%")
    tasks = list[int]()
    for part in ranges.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?", part)
        some = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1)) if match else ()
        if not match or len(tasks) + len(some) > MOST or (limit and _count(limit) is None):
            raise SpecError(f"--array={text} is not an array of Slurm's", "for example 0-9%4", where=where)
        tasks += some
    return tasks, int(limit or 0)


def _count(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else None


def _minutes(text: str, where: str) -> int:
    """`90`, `90:00`, `1:30:00`, `1-12`, `1-12:30`, `1-12:30:00`."""
    match = re.fullmatch(r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,6}))?(?::([0-9]{1,6}))?", text)
    if not match:
        raise SpecError(f"--time={text} is not a time of Slurm's", "for example 8:00:00", where=where)
    days, first, second, _ = (int(part or 0) for part in match.groups())
    if match[1]:
        return max(1, days * 1440 + first * 60 + second)
    return max(1, first * 60 + second if match[4] else first)


def _resources(asked: dict[str, str], notes: list[str]) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if (cpus := _count(asked.get("cpus-per-task"))) is not None:
        resources["cpus"] = cpus
    if size := re.fullmatch(r"(\d+)([KMGT]?)B?", asked.get("mem", ""), re.IGNORECASE):
        resources["memory"] = f"{size[1]}{size[2].upper() or 'M'}iB"
    parts = [part.removeprefix("gres/").partition("(")[0] for part in asked.get("gres", "").split(",")]
    of_gres = [part for part in parts if re.match(r"gpu(:|$)", part)]
    notes += [
        f"#SBATCH --gres={part}: not carried over; set `gres` of the fleet"
        for part in parts
        if part and part not in of_gres
    ]
    gpus = of_gres or (asked.get("gpus") or asked.get("gpus-per-node") or "").split(",")
    if any(gpus):
        counts = [re.search(r"(?:^|:)([0-9]{1,9})$", part) for part in gpus]
        resources["gpus"] = sum(int(count[1]) if count else 1 for count in counts)
        if re.search(r"[a-z]", re.sub(r"\bgpu\b", "", ",".join(gpus)), re.IGNORECASE):
            text = "the number of GPUs is carried over; set `gres` of the fleet for the kind"
            notes.append(f"{','.join(gpus)}: {text}")
    if (nodes := _count(asked.get("nodes")) or 1) > 1:
        resources["nodes"] = nodes
    if asked.get("ntasks", "1") != "1":
        notes.append(f"#SBATCH --ntasks={asked['ntasks']}: not carried over")
    return resources


def _begun(text: str, name: str, is_array: bool, fleet: dict[str, Any]) -> startup.Startup:
    """The command, without the secrets that stand in it; they are named."""
    body = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    header = [line for line in body if re.match(r"(module|source|conda|\.)\s", line)]
    rest = [line for line in body if line not in header]
    if not rest:
        raise SpecError("it runs no command", "name the script of the training", where=name)
    if len(rest) == 1 and not startup.holds_secrets("\n".join(header)):
        line = re.sub(r"^srun\s+(?=\w*python|\./)", "", _ID.sub("HOSTLER_TASK", rest[0]))
        clean = withheld.withhold(line)
        if shell.is_plain(line) and (words := shell.words(line)) and not clean.left:
            fleet |= {"header": header} if header else {}
            words = ["bash", "-c", clean.text] if clean.text != line else words
            command = [word.replace("HOSTLER_TASK", f"{{{TASK}}}") for word in words]
            return startup.Startup(tuple(command), secrets=tuple(clean.names), notes=_named(clean))
    return _whole(text, name, ["env", f"SLURM_ARRAY_TASK_ID={{{TASK}}}"] if is_array else [])


def _whole(text: str, name: str, before: list[str]) -> startup.Startup:
    """All of the script; one that holds secrets is not uploaded, and a shell gets it without them."""
    clean, said = withheld.withhold(text), f"{name} is more than one command: each run runs all of it"
    if not clean.left and clean.text == text:
        return startup.Startup((*before, "bash", name), notes=(said,))
    if clean.left or f"{{{TASK}}}" in clean.text:  # a variable of the script's would be taken for ours
        where = ", ".join([*clean.left, *clean.names])
        note = f"{name} holds a secret ({where}): take it out, and name the `command`"
        return startup.Startup(secrets=tuple(clean.names), notes=(note, *_named(clean)))
    command = (*before, "bash", "-c", clean.text)
    return startup.Startup(command, secrets=tuple(clean.names), notes=(said, *_named(clean)))


def _named(clean: withheld.Withheld) -> tuple[str, ...]:
    return tuple(
        f"{name}: its value is not carried over: export {name}=... before a sweep" for name in clean.names
    )
