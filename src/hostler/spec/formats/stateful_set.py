"""A StatefulSet of Kubernetes whose pods train one model, as a command and keys of a fleet. Pure.

`{{ name }}` in it is filled from `settings.yaml` beside it. A file may hold several documents, the service of
the pods among them. Variables by which the pods found each other are hostler's own to set.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.spec.files.yaml12 import load
from hostler.spec.formats import private, shell, startup

NAMES = ("stateful-set.yaml", "stateful-set.yml", "statefulset.yaml", "stateful_set.yaml")
_HOLE = re.compile(r"\{\{-?\s*(?:\.?\w+\.)*(\w+)\s*-?\}\}")
_VARIABLE = re.compile(r"\$\((\w+)\)")
_GPU = "nvidia.com/gpu"
_OURS = ("TF_CONFIG", "WORKER_COUNT", "POD_NAME", "POD_IP", "POD_NAMESPACE")  # hostler's own to set


@dataclass(frozen=True)
class Pods:
    """`command` is empty where the image's own is run; `fleet` are keys of a fleet of pods."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    requirements: str = ""
    fleet: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(text: str, name: str, settings: Mapping[str, Any]) -> Pods:
    """SpecError for a text that is not YAML, or has no StatefulSet with a container."""
    known = {key: str(value) for key, value in settings.items()}
    filled = _HOLE.sub(lambda hole: known.get(hole[1], hole[0]), text)
    if missing := _HOLE.search(filled):
        hint = "write the value into it, or into settings.yaml"
        raise SpecError(f"{{{{ {missing[1]} }}}}: settings.yaml has no {missing[1]}", hint, where=name)
    made = _table(_stateful_set(filled, name), "spec")
    pod = _table(_table(made, "template"), "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], Mapping):
        raise SpecError("its StatefulSet has no container", "name the file of the workers", where=name)
    notes = [
        f"{name}: container {container.get('name', '?')} is not carried over"
        for container in containers[1:]
        if isinstance(container, Mapping)
    ]
    if (count := made.get("replicas")) is not None and str(count) != known.get("worker_count", str(count)):
        notes.append(f"{name} has {count} replicas; worker_count of settings.yaml is taken")
    env, secrets, lines = environment(containers[0], name)
    started = begun(containers[0], env, name)
    carried = ("containers", "nodeSelector", "tolerations", "serviceAccountName", "restartPolicy")
    notes += [
        *lines,
        *started.notes,
        *(f"{name}: {key} is not carried over" for key in pod if key not in carried),
    ]
    return Pods(
        started.command,
        {**env, **started.env},
        tuple(dict.fromkeys([*secrets, *started.secrets])),
        started.setup,
        started.requirements,
        fleet_of(pod, containers[0]),
        tuple(dict.fromkeys(notes)),
    )


def _stateful_set(text: str, name: str) -> Mapping[str, Any]:
    parts = re.split(r"^---[ \t]*$", text, flags=re.MULTILINE)
    for part in parts:
        value = load(part, name).value
        if isinstance(value, Mapping) and value.get("kind") == "StatefulSet":
            return value
    raise SpecError("it has no StatefulSet", "name the file of the workers", where=name)


def _table(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key)
    return value if isinstance(value, Mapping) else {}


def environment(container: Mapping[str, Any], name: str) -> tuple[dict[str, str], list[str], list[str]]:
    """Variables with plain values, those that are secrets, and lines for a person."""
    env, secrets, notes = dict[str, str](), list[str](), list[str]()
    given = container.get("env")
    for one in given if isinstance(given, list) else ():
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str) or one["name"] in _OURS:
            continue
        variable, value = one["name"], str(one.get("value", ""))
        if "secretKeyRef" in _table(one, "valueFrom") or private.is_secret(variable, value):
            secrets.append(variable)
            notes.append(f"{variable}: its value is not carried over: export {variable}=... before a sweep")
        elif "valueFrom" in one:
            notes.append(f"{name}: {variable} is a fact of the pod: not carried over")
        else:
            env[variable] = value
    return env, secrets, notes


def begun(container: Mapping[str, Any], env: Mapping[str, str], name: str) -> startup.Startup:
    """The command; the program inside a `bash -c` where that is plain."""
    words = [*_words(container.get("command")), *_words(container.get("args"))]
    words = [_VARIABLE.sub(lambda used: env.get(used[1], f"${{{used[1]}}}"), one) for one in words]
    if not words:
        return startup.Startup(notes=(f"the program of {name} is the image's own: name the `command`",))
    if (
        len(words) == 3
        and re.fullmatch(r"(?:/bin/)?(?:ba)?sh", words[0])
        and re.fullmatch(r"-\w*c", words[1])
    ):
        return startup.read_inline(words[2], name)
    if startup.holds_secrets(shlex.join(words)):
        return startup.read_inline(shlex.join(words), name)
    if unset := [one for word in words for one in shell.unknown(word) if one not in env]:
        text = f"${unset[0]} in the command is not set here: put its value there, or into `env`"
        return startup.Startup(tuple(words), notes=(text,))
    return startup.Startup(tuple(words))


def _words(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return shell.words(value)
    return [str(one) for one in value] if isinstance(value, list) else []


def fleet_of(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {"image": str(container["image"])} if container.get("image") else {}
    asked = {
        **_table(_table(container, "resources"), "requests"),
        **_table(_table(container, "resources"), "limits"),
    }
    if re.fullmatch(r"[1-9]\d{0,2}", str(asked.get(_GPU, ""))):
        record["gpus"] = int(asked[_GPU])
    if pod.get("nodeSelector"):
        record["node_selector"] = dict(_table(pod, "nodeSelector"))
    if isinstance(pod.get("tolerations"), list):
        record["tolerations"] = pod["tolerations"]
    if pod.get("serviceAccountName"):
        record["service_account"] = str(pod["serviceAccountName"])
    return record
