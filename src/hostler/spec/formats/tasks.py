"""Tasks of SkyPilot, dstack, Kubeflow, docker-compose and W&B launch, as a command and a fleet. Pure.

Every key that has no counterpart here is a line for a person. Values that look like secrets are carried over
by their names alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hostler.errors import SpecError
from hostler.spec.formats import gpu_wish, private, rendezvous, shell, startup, stateful_set
from hostler.spec.formats.machines import Machines
from hostler.spec.names import slug

_REFERENCE = re.compile(r"\$\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|\$(?P<bare>\w+)")
_FILLED_IN = re.compile(r"\$\$|\$\{(?P<name>\w+):?-(?P<default>[^}]*)\}|\$\{[^}]*\}|\$\w+")
_CLOUDS = {"gcp": "gce", "kubernetes": "kubernetes", "k8s": "kubernetes"}
_SPOT = {"spot": True, "on-demand": False, "auto": "prefer"}


def is_it(value: Any) -> bool:
    return isinstance(value, Mapping) and any(test(value) for test, _ in READERS)


def read(value: Mapping[str, Any], where: str) -> Machines:
    """SpecError for one that trains nothing."""
    reader = next(reader for test, reader in READERS if test(value))
    made = reader(value, where)
    return replace(made, hides_itself=_holds_secrets(value))


@dataclass
class _Carried:
    """A task as a fleet and a command, and lines about what is not carried over."""

    where: str
    project: dict[str, Any] = field(default_factory=dict)
    fleet: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    def left(self, given: Mapping[str, Any], carried: tuple[str, ...], prefix: str = "") -> None:
        self.notes += [f"{prefix}{key}: not carried over" for key in given if key not in carried]

    def variables(self, given: Any) -> None:
        """Variables as a table, or as a list of NAME=VALUE."""
        env = self.project.setdefault("env", {})
        for name, value in _pairs(given):
            if value is None or private.is_secret(name, value) or private.has_shape(value):
                self.secrets.append(name)
                self.notes.append(f"{name}: its value is not carried over: export {name}=... before a sweep")
            else:
                env[name] = value

    def without_secrets(self, given: Any, path: str) -> Any:
        """The same value less what is a secret in it: parameters are kept in the store, and shown."""
        if isinstance(given, list):
            return [self.without_secrets(one, path) for one in given]
        if not isinstance(given, Mapping):
            return given
        secret = [key for key, value in given.items() if _is_secret(str(key), value)]
        self.notes += [
            f"{path}.{key}: secrets cannot be parameters: let the script read a variable that `secrets` names"
            for key in secret
        ]
        return {
            key: self.without_secrets(value, f"{path}.{key}")
            for key, value in given.items()
            if key not in secret
        }

    def script(self, text: str, setup: str = "") -> None:
        """The commands of a shell: the last one that runs a program is the training."""
        if "\n---" in text or not text.strip():
            raise SpecError("it runs no command", "name the file of the training", where=self.where)
        text, given = rendezvous.without(text)
        if given:
            options = ", ".join(f"--{name}" for name in dict.fromkeys(given))
            self.notes.append(f"torchrun {options}: not carried over: hostler tells it the nodes of the run")
        self.begun(startup.read_inline("\n".join(filter(None, [setup, text])), self.where))
        for name in dict.fromkeys(rendezvous.PLATFORMS.findall(text)):
            self.notes.append(
                f"${name}: not set here; RANK, WORLD_SIZE and MASTER_ADDR are, in a run of several nodes"
            )

    def begun(self, begun: startup.Startup) -> None:
        self.project |= {"command": list(begun.command)} if begun.command else {}
        lines = [line for line in begun.setup if line != "set -e"]
        self.project |= {"setup": ["bash", "-c", "; ".join(["set -e", *lines])]} if lines else {}
        self.project |= {"git": begun.git} if begun.git else {}
        self.project |= {"git_token": begun.token} if begun.git and begun.token else {}
        python = {"requirements": begun.requirements} if begun.requirements else {}
        if begun.conda_env and any(re.search(r"conda\b.* create\b", line) for line in begun.setup):
            what = f"conda activate {begun.conda_env}: the setup makes this environment"
            self.notes.append(f"{what}: not carried over: `python: {{conda: environment.yml}}` makes one")
        elif begun.conda_env:
            python = {"conda_env": begun.conda_env}
            left = f": not carried over: install it into {begun.conda_env}"
            self.notes += [f"pip install -r {begun.requirements}{left}"] if begun.requirements else []
        self.project |= {"python": python} if python else {}
        self.project["env"] = {**self.project.get("env", {}), **begun.env}
        self.secrets += begun.secrets
        self.notes += begun.notes

    def machines(self, tool: str, name: Any, **more: Any) -> Machines:
        fleet = slug(str(name or self.fleet["backend"]))
        made = {key: value for key, value in self.project.items() if value not in ({}, [], None)}
        made |= {"secrets": list(dict.fromkeys(self.secrets))} if self.secrets else {}
        made |= {"resources": self.resources} if self.resources else {}
        if self.fleet["backend"] != "local":
            self.notes.append(
                "store: not in it: name a bucket that its machines reach (store: gs://bucket/runs)"
            )
        made |= {"fleet": fleet, "fleets": {fleet: self.fleet}}
        return Machines(tool, made, tuple(dict.fromkeys(self.notes)), **more)


def _sky(given: Mapping[str, Any], where: str) -> Machines:
    made = _Carried(where)
    made.left(given, ("name", "run", "setup", "envs", "secrets", "resources", "num_nodes", "workdir"))
    if given.get("workdir") not in (None, "."):
        made.notes.append(f"workdir: {given['workdir']}: put {where} there; hostler packs its own folder")
    made.variables(given.get("envs"))
    made.variables(dict.fromkeys(_table(given, "secrets")))
    asked = _chosen(made, _table(given, "resources"))
    known = ("accelerators", "cpus", "memory", "use_spot", "disk_size", "cloud", "infra", "region", "zone")
    made.left(asked, (*known, "job_recovery"), "resources.")
    _retries(made, asked.get("job_recovery"))
    infra = _infra(asked)
    if infra[0] not in _CLOUDS:
        made.notes.append(f"resources: {infra[0]} is not a platform of hostler's: the fleet is on Google's")
    made.fleet["backend"] = _CLOUDS.get(infra[0], "gce")
    zone = asked.get("zone") or asked.get("region") or next((one for one in infra[1:2] if one != "*"), None)
    if made.fleet["backend"] == "gce":
        made.fleet |= {"zones": [str(zone)]} if zone and infra[0] == "gcp" else {}
        made.fleet |= {"spot": bool(asked["use_spot"])} if "use_spot" in asked else {}
        made.fleet |= {"disk": f"{_count(asked['disk_size'])}GB"} if _count(asked.get("disk_size")) else {}
        made.fleet |= {"cpus": str(asked["cpus"])} if asked.get("cpus") else {}
        made.fleet |= {"memory": _memory(asked["memory"])} if asked.get("memory") else {}
    else:
        made.resources |= {"cpus": cpus} if (cpus := _count(str(asked.get("cpus")).rstrip("+"))) else {}
        made.resources |= {"memory": _memory(asked["memory"]).rstrip("+")} if asked.get("memory") else {}
        of_vms = ("use_spot", "disk_size")
        made.notes += [f"resources.{key}: not carried over" for key in of_vms if asked.get(key) is not None]
    if infra[0] != "gcp":
        places = [key for key in ("region", "zone") if asked.get(key)]
        made.notes += [f"resources.{key}: not carried over" for key in places]
    _accelerators(made, asked.get("accelerators"))
    _nodes(made, given.get("num_nodes"))
    made.script(str(given.get("run") or ""), str(given.get("setup") or ""))
    return made.machines("SkyPilot", given.get("name"))


def _chosen(made: _Carried, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is asked for, with the first of several alternatives that is on a platform of hostler's; GPUs are
    those of all of them there."""
    key = "any_of" if "any_of" in asked else "ordered"
    given = asked.get(key)
    offered = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    if not offered:
        return asked
    common = {name: value for name, value in asked.items() if name != key}
    whole = [{**common, **one} for one in offered]
    first = next((one for one in whole if _platform(one) in _CLOUDS), whole[0])
    there = [one for one in whole if _platform(one) == _platform(first)]
    gpus = [wish for one in there for wish in _wishes(one.get("accelerators"))]
    same = _without_gpus(first)
    for alternative, one in zip(offered, whole, strict=True):
        if one not in there or _without_gpus(one) != same:
            said = ", ".join(f"{name}: {value}" for name, value in alternative.items())
            made.notes.append(f"resources.{key}: {said}: not carried over")
    return {**same, "accelerators": list(dict.fromkeys(gpus))} if gpus else same


def _without_gpus(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name != "accelerators"}


def _infra(asked: Mapping[str, Any]) -> list[str]:
    """The platform, its region and zone: `gcp/us-central1/us-central1-a`."""
    return str(asked.get("infra") or asked.get("cloud") or "gcp").lower().split("/")


def _platform(asked: Mapping[str, Any]) -> str:
    return _infra(asked)[0]


def _retries(made: _Carried, given: Any) -> None:
    """How often a task that fails by itself is tried again; one that is preempted always is."""
    count = _count(given.get("max_restarts_on_errors")) if isinstance(given, Mapping) else None
    made.project |= {"retries": count} if count is not None else {}


def _dstack(given: Mapping[str, Any], where: str) -> Machines:
    made = _Carried(where)
    made.left(given, ("type", "name", "env", "commands", "resources", "nodes", "spot_policy", "max_duration"))
    made.variables(given.get("env"))
    made.fleet["backend"] = "gce"
    if (policy := str(given.get("spot_policy"))) in _SPOT:
        made.fleet["spot"] = _SPOT[policy]
    asked = _table(given, "resources")
    made.left(asked, ("gpu", "cpu", "memory", "disk"), "resources.")
    for key, ours in (("cpu", "cpus"), ("memory", "memory")):
        if asked.get(key):
            made.fleet[ours] = _least(asked[key])
    disk = asked.get("disk")
    if size := re.match(r"\d+", str(disk.get("size") if isinstance(disk, Mapping) else disk or "")):
        made.fleet["disk"] = f"{size[0]}GB"
    if asked.get("gpu") is not None:
        wish = gpu_wish.read(asked["gpu"])
        made.notes += wish.notes
        made.resources |= {"gpus": wish.count} if wish.count else {}
        named = [f"{model}:{wish.count}" for model in wish.models if wish.count]
        made.fleet |= {"gpu": named[0] if len(named) == 1 else named} if named else {}
        if wish.count and not named and not wish.notes:
            made.notes.append("resources.gpu: no model is named: name one as `gpu` of the fleet")
    _nodes(made, given.get("nodes"))
    if given.get("max_duration") not in (None, "off"):
        made.project["limits"] = {"time": given["max_duration"]}
    commands = given.get("commands")
    made.script(
        "\n".join(str(command) for command in commands) if isinstance(commands, list) else str(commands or "")
    )
    return made.machines("dstack", given.get("name"))


def _kubeflow(given: Mapping[str, Any], where: str) -> Machines:
    made = _Carried(where)
    spec, kind = _table(given, "spec"), str(given["kind"])
    if kind == "TrainJob":
        trainer = _table(spec, "trainer")
        made.left(spec, ("trainer",), "spec.")
        carried = ("image", "command", "args", "env", "numNodes", "numProcPerNode", "resourcesPerNode")
        made.left(trainer, carried, "spec.trainer.")
        container = {**trainer, "resources": _table(trainer, "resourcesPerNode")}
        pod, nodes = dict[str, Any](), trainer.get("numNodes")
        _processes(made, trainer.get("numProcPerNode"))
    else:
        replicas = _table(spec, "pytorchReplicaSpecs")
        made.left(spec, ("pytorchReplicaSpecs", "elasticPolicy", "nprocPerNode"), "spec.")
        _processes(made, spec.get("nprocPerNode"))
        groups = [replica for replica in replicas.values() if isinstance(replica, Mapping)]
        pod = dict(_table(_table(groups[0], "template"), "spec")) if groups else {}
        containers = pod.get("containers")
        container = containers[0] if isinstance(containers, list) and containers else {}
        nodes = sum(_count(group.get("replicas", 1)) or 0 for group in groups)
        of_pod = ("containers", "nodeSelector", "tolerations", "serviceAccountName", "restartPolicy")
        made.left(pod, of_pod, "template.spec.")
        of_container = ("name", "image", "imagePullPolicy", "command", "args", "env", "resources")
        made.left(container if isinstance(container, Mapping) else {}, of_container, "container.")
        if len(groups) > 1:
            made.notes.append("all replicas run the command of the first: hostler chooses who leads")
    if not isinstance(container, Mapping) or not container:
        raise SpecError(f"its {kind} has no container", "name the file of the workers", where=where)
    env, secrets, notes = stateful_set.environment(container, where)
    made.project["env"], made.secrets, made.notes = env, [*secrets], [*made.notes, *notes]
    made.begun(stateful_set.begun(container, env, where))
    made.fleet = {"backend": "kubernetes", **stateful_set.fleet_of(pod, container)}
    if gpus := made.fleet.get("gpus"):
        made.resources["gpus"] = gpus
    _amounts(made, _table(container, "resources"))
    metadata = _table(given, "metadata")
    made.fleet |= {"namespace": str(metadata["namespace"])} if metadata.get("namespace") else {}
    _nodes(made, nodes)
    _elastic(made, _table(spec, "elasticPolicy"))
    return made.machines(f"Kubeflow {kind}", metadata.get("name"))


def _processes(made: _Carried, given: Any) -> None:
    """Processes of a node; `auto`, `cpu` and `gpu` leave it to the launcher."""
    procs = _count(given)
    if procs and procs > 1:
        made.resources["procs_per_node"] = procs
    elif given is not None and procs is None:
        made.notes.append(f"{given} processes of a node: not carried over: the launcher decides")


def _amounts(made: _Carried, given: Mapping[str, Any]) -> None:
    """CPUs and memory of a container, as a run asks for them."""
    asked = {**_table(given, "requests"), **_table(given, "limits")}
    for key, value in asked.items():
        cpus = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(m?)", str(value))
        if key == "cpu" and cpus:
            count = float(cpus[1]) / (1000 if cpus[2] else 1)
            made.resources["cpus"] = int(count) if count.is_integer() else count
        elif key == "memory" and re.fullmatch(r"\d+(?:[KMGT]i?)?", str(value)):
            made.resources["memory"] = (
                f"{value}B" if isinstance(value, str) and value[-1:].isalpha() else value
            )
        elif key != "nvidia.com/gpu":
            made.notes.append(f"resources.{key}: not carried over")


def _elastic(made: _Carried, given: Mapping[str, Any]) -> None:
    """How few nodes may train together."""
    fewest, most = _count(given.get("minReplicas")), made.resources.get("nodes", 1)
    if fewest and fewest < most:
        made.resources["min_nodes"] = fewest
    made.left(given, ("minReplicas", "maxReplicas"), "spec.elasticPolicy.")


def _compose(given: Mapping[str, Any], where: str) -> Machines:
    made, services = _Carried(where), _table(given, "services")
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
    _deploy(made, _table(service, "deploy"), f"{name}.deploy.")
    before, command = (_interpolated(made, service.get(key), key) for key in ("entrypoint", "command"))
    if before or isinstance(command, list):
        words = [*_words(before, where), *_words(command, where)]
        made.begun(stateful_set.begun({"command": words}, made.project["env"], where))
    else:
        made.script(str(command))
    made.fleet["backend"] = "local"
    return made.machines("docker-compose", name)


def _interpolated(made: _Carried, given: Any, key: str) -> Any:
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


def _filled_in(made: _Carried, given: Any) -> dict[str, str | None]:
    """Variables of a service as docker-compose fills them in: `${NAME:-default}`, `${NAME}`, `$$`."""
    found: dict[str, str | None] = {}
    for name, value in _pairs(given):
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


def _deploy(made: _Carried, deploy: Mapping[str, Any], path: str) -> None:
    """GPUs of a service; what else it is given there runs here without."""
    asked = _table(deploy, "resources")
    held = _table(asked, "reservations")
    made.left(deploy, ("resources",), path)
    made.left(asked, ("reservations", "limits"), f"{path}resources.")
    made.left(_table(asked, "limits"), (), f"{path}resources.limits.")
    made.left(held, ("devices",), f"{path}resources.reservations.")
    devices = held.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if not isinstance(device, Mapping) or "gpu" not in str(device.get("capabilities")):
            made.notes.append(f"{path}resources.reservations.devices: one is not a GPU: not carried over")
            continue
        ids = device.get("device_ids")
        count = len(ids) if isinstance(ids, list) else _count(device.get("count", "all"))
        made.resources["gpus"] = count or 1
        if count is None:
            made.notes.append("all GPUs: a run is given one: write their number into `resources`")


def _launch(given: Mapping[str, Any], where: str) -> Machines:
    made, overrides = _Carried(where), _table(given, "overrides")
    made.left(given, ("overrides", "resource", "resource_args", "docker", "name", "job", "project", "entity"))
    made.left(overrides, ("entry_point", "args", "run_config", "env"), "overrides.")
    of_run = {"WANDB_PROJECT": given.get("project"), "WANDB_ENTITY": given.get("entity")}
    made.variables({name: value for name, value in of_run.items() if value})
    made.variables(overrides.get("env"))
    command = [word for key in ("entry_point", "args") for word in _words(overrides.get(key), where)]
    if command:
        made.begun(stateful_set.begun({"command": command}, made.project["env"], where))
        made.left({"job": given["job"]} if given.get("job") else {}, ())
    else:
        made.notes.append(f"job {given.get('job')}: its program is kept by W&B: name the `command`")
    resource = str(given.get("resource") or "local-process")
    made.fleet["backend"] = "kubernetes" if resource == "kubernetes" else "local"
    if resource not in ("kubernetes", "local-process", "local-container"):
        made.notes.append(f"resource: {resource} is not a platform of hostler's: the fleet is this machine")
    args = _table(_table(given, "resource_args"), resource)
    image = _table(given, "docker").get("docker_image")
    if made.fleet["backend"] == "kubernetes":
        made.fleet |= {"image": str(image)} if image else {}
        made.fleet |= {"namespace": str(args["namespace"])} if args.get("namespace") else {}
        made.left(args, ("namespace",), f"resource_args.{resource}.")
    else:
        made.left(args, (), f"resource_args.{resource}.")
        made.notes += [f"docker.docker_image: {image}: runs use the Python of the fleet"] if image else []
    config = made.without_secrets(_table(overrides, "run_config"), "run_config")
    parameters = {key: _value(value) for key, value in config.items()}
    return made.machines("W&B launch", given.get("name"), parameters=parameters)


def _is_secret(name: str, value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_secret(name, one) for one in value)
    return isinstance(value, str) and (private.is_secret(name, value) or private.has_shape(value))


def _holds_secrets(given: Any, name: str = "") -> bool:
    """Whether a value that nobody else should know stands in the file."""
    if isinstance(given, Mapping):
        pair = isinstance(given.get("name"), str) and _is_secret(given["name"], given.get("value"))
        return pair or any(_holds_secrets(value, str(key)) for key, value in given.items())
    if isinstance(given, list):
        return any(_holds_secrets(one, name) for one in given)
    return isinstance(given, str) and (_is_secret(name, given) or startup.holds_secrets(given))


def _value(value: Any) -> Any:
    """A single value, which stands as one choice."""
    return [value] if isinstance(value, (list, Mapping)) else value


def _accelerators(made: _Carried, given: Any) -> None:
    """`A100:4`, `{A100: 4}`, `[A100:1, L4:1]`; `:1` or `24GB` names no model."""
    wishes = _wishes(given)
    matches = [re.fullmatch(r"([A-Za-z][\w-]*)?:?([0-9]{1,6})?", wish) for wish in wishes]
    made.notes += [
        f"{one}: not carried over" for one, known in zip(wishes, matches, strict=True) if not known
    ]
    named = [f"{match[1].upper()}:{match[2] or 1}" for match in matches if match and match[1]]
    counts = [int(match[2] or 1) for match in matches if match]
    if counts:
        made.resources["gpus"] = max(counts)
    if made.fleet["backend"] == "gce" and named:
        made.fleet["gpu"] = named[0] if len(named) == 1 else named
    elif named:
        made.notes.append(f"{named[0]}: pods are given any GPU: choose by `node_selector`")


def _wishes(given: Any) -> list[str]:
    if isinstance(given, Mapping):
        return [f"{name}:{count}" for name, count in given.items()]
    return [str(one) for one in given] if isinstance(given, list) else [] if given is None else [str(given)]


def _nodes(made: _Carried, given: Any) -> None:
    if (nodes := _count(given)) and nodes > 1:
        made.resources["nodes"] = nodes


def _count(value: Any) -> int | None:
    return int(str(value)) if re.fullmatch(r"[0-9]{1,6}", str(value)) else None


def _least(value: Any) -> str:
    """`8..` or `16GB..64GB` as at least the first."""
    first, dots, _ = str(value).partition("..")
    return f"{first}+" if dots else first


def _memory(value: Any) -> str:
    """SkyPilot's `32+` is in gigabytes."""
    match = re.fullmatch(r"(\d+)(\+?)", str(value))
    return f"{match[1]}GB{match[2]}" if match else str(value)


def _pairs(given: Any) -> Iterator[tuple[str, str | None]]:
    if isinstance(given, Mapping):
        yield from ((str(name), None if value is None else str(value)) for name, value in given.items())
    for one in given if isinstance(given, list) else ():
        name, equals, value = str(one).partition("=")
        yield name, value if equals else None


def _words(value: Any, where: str) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    words = shell.words(str(value or ""))
    if value and not words:
        raise SpecError(f"{value!r} is not a command: a quote is not closed", "close it", where=where)
    return words


def _table(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key)
    return value if isinstance(value, Mapping) else {}


_Given = Mapping[str, Any]
READERS: tuple[tuple[Callable[[_Given], bool], Callable[[_Given, str], Machines]], ...] = (
    (lambda given: given.get("kind") in ("PyTorchJob", "TrainJob"), _kubeflow),
    (lambda given: given.get("type") == "task" and "commands" in given, _dstack),
    (lambda given: isinstance(given.get("services"), Mapping) and "commands" not in given, _compose),
    (lambda given: "overrides" in given and ("resource" in given or "job" in given), _launch),
    (
        lambda given: (
            isinstance(given.get("run"), str)
            and any(key in given for key in ("resources", "setup", "num_nodes", "envs", "file_mounts"))
        ),
        _sky,
    ),
)
