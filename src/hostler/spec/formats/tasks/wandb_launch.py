"""Jobs of W&B launch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostler.spec.formats import stateful_set
from hostler.spec.formats.machines import Machines
from hostler.spec.formats.tasks.carried import Carried, table, words_of


def read(given: Mapping[str, Any], where: str) -> Machines:
    made, overrides = Carried(where), table(given, "overrides")
    made.left(given, ("overrides", "resource", "resource_args", "docker", "name", "job", "project", "entity"))
    made.left(overrides, ("entry_point", "args", "run_config", "env"), "overrides.")
    of_run = {"WANDB_PROJECT": given.get("project"), "WANDB_ENTITY": given.get("entity")}
    made.variables({name: value for name, value in of_run.items() if value})
    made.variables(overrides.get("env"))
    command = [word for key in ("entry_point", "args") for word in words_of(overrides.get(key), where)]
    if command:
        made.begun(stateful_set.begun({"command": command}, made.project["env"], where))
        made.left({"job": given["job"]} if given.get("job") else {}, ())
    else:
        made.notes.append(f"job {given.get('job')}: its program is kept by W&B: name the `command`")
    resource = str(given.get("resource") or "local-process")
    made.fleet["backend"] = "kubernetes" if resource == "kubernetes" else "local"
    if resource not in ("kubernetes", "local-process", "local-container"):
        made.notes.append(f"resource: {resource} is not a platform of hostler's: the fleet is this machine")
    args = table(table(given, "resource_args"), resource)
    image = table(given, "docker").get("docker_image")
    if made.fleet["backend"] == "kubernetes":
        made.fleet |= {"image": str(image)} if image else {}
        made.fleet |= {"namespace": str(args["namespace"])} if args.get("namespace") else {}
        made.left(args, ("namespace",), f"resource_args.{resource}.")
    else:
        made.left(args, (), f"resource_args.{resource}.")
        made.notes += [f"docker.docker_image: {image}: runs use the Python of the fleet"] if image else []
    config = made.without_secrets(table(overrides, "run_config"), "run_config")
    parameters = {key: _value(value) for key, value in config.items()}
    return made.machines("W&B launch", given.get("name"), parameters=parameters)


def _value(value: Any) -> Any:
    """A single value, which stands as one choice."""
    return [value] if isinstance(value, (list, Mapping)) else value
