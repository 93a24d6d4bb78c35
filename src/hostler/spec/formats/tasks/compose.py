"""A service of docker-compose that trains. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.errors import SpecError
from hostler.spec.formats import stateful_set
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks.carried import Carried, pairs, table, whole_number, words_of

_REFERENCE = re.compile(r"\$\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|\$(?P<bare>\w+)")
_FILLED_IN = re.compile(r"\$\$|\$\{(?P<name>\w+):?-(?P<default>[^}]*)\}|\$\{[^}]*\}|\$\w+")


def read(given: Mapping[str, Any], where: str) -> Machines:
    made, services = Carried(where), table(given, "services")
    able = {
        name: f"{one.get('entrypoint') or ''} {one.get('command') or ''}"
        for name, one in services.items()
        if isinstance(one, Mapping) and (one.get("command") or one.get("entrypoint"))
    }
    if not able:
        raise SpecError("no service of it has a command", "write the training's into it", where=where)
    name = next((name for name, text in able.items() if "python" in text), next(iter(able)))
    service = services[name]
    made.notes += [f"service {one}: not carried over" for one in services if one != name]
    made.left(given, ("services", "version", "name"))
    made.left(service, ("command", "entrypoint", "environment", "deploy"), f"{name}.")
    made.variables(_filled_in(made, service.get("environment")))
    _deploy(made, table(service, "deploy"), f"{name}.deploy.")
    before, command = (_interpolated(made, service.get(key), key) for key in ("entrypoint", "command"))
    if before or isinstance(command, list):
        words = [*words_of(before, where), *words_of(command, where)]
        made.begun(stateful_set.begun({"command": words}, made.project["env"], where))
    else:
        made.script(str(command))
    made.fleet["backend"] = "local"
    return made.machines("docker-compose", name)


def _interpolated(made: Carried, given: Any, key: str) -> Any:
    """Words or text as docker-compose fills them in, which knows no shell."""
    if isinstance(given, list):
        return [_interpolated(made, one, key) for one in given]

    def filled(used: re.Match[str]) -> str:
        if used[0] == "$$":
            return "$"
        if used["default"] is None:
            made.notes.append(
                f"{used[0]} in the {key}: not carried over: write its value there, or into `env`"
            )
            return used[0]
        made.notes.append(f"{used[0]} in the {key}: its default is carried over")
        return used["default"]

    return _FILLED_IN.sub(filled, given) if isinstance(given, str) else given


def _filled_in(made: Carried, given: Any) -> dict[str, str | None]:
    """Variables of a service as docker-compose fills them in: `${NAME:-default}`, `${NAME}`, `$$`."""
    found: dict[str, str | None] = {}
    for name, value in pairs(given):
        used = _REFERENCE.fullmatch(value or "")
        if used and used["default"] is not None:
            found[name] = used["default"]
            made.notes.append(f"{name}: {value}: its default is carried over")
        elif used and name in (used["name"], used["bare"]):
            found[name] = None
        elif value and _REFERENCE.search(value.replace("$$", "")):
            made.notes.append(f"{name}: {value}: not carried over: write its value into `env`")
        else:
            found[name] = value and value.replace("$$", "$")
    return found


def _deploy(made: Carried, deploy: Mapping[str, Any], path: str) -> None:
    """GPUs of a service; what else it is given there runs here without."""
    asked = table(deploy, "resources")
    held = table(asked, "reservations")
    made.left(deploy, ("resources",), path)
    made.left(asked, ("reservations", "limits"), f"{path}resources.")
    made.left(table(asked, "limits"), (), f"{path}resources.limits.")
    made.left(held, ("devices",), f"{path}resources.reservations.")
    devices = held.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if not isinstance(device, Mapping) or "gpu" not in str(device.get("capabilities")):
            made.notes.append(f"{path}resources.reservations.devices: one is not a GPU: not carried over")
            continue
        ids = device.get("device_ids")
        count = len(ids) if isinstance(ids, list) else whole_number(device.get("count", "all"))
        made.resources["gpus"] = count or 1
        if count is None:
            made.notes.append("all GPUs: a run is given one: write their number into `resources`")
