"""Requests of a launch to Compute Engine, made from fleet and launch alone. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from hostler import env
from hostler import settings as hostler_settings
from hostler.backends import cloud
from hostler.backends.base import Launch
from hostler.backends.capacity import MachineGroup
from hostler.backends.gce import groups, shape, template
from hostler.backends.gce.names import CHOSEN, ON_DEMAND, GceOwner, last, owner_of
from hostler.backends.gce.shape import VmShape
from hostler.backends.gce.wish import chosen as wanted
from hostler.backends.gce.wish import larger, wishes
from hostler.backends.gce.wish.choice import Candidate
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration

LONGEST = 120 * cloud.DAY  # Compute Engine takes no time limit beyond it
DEFAULT = "default"  # the network that a project has from its beginning
_INSIDE = (
    "no external addresses: the subnetwork needs Private Google Access for the bucket, and Cloud NAT for "
    "packages from elsewhere; hostler ssh needs a way into the network"
)
USER = "hostler"  # the account for hand work on a VM
EMULATED = ("STORAGE_EMULATOR_HOST", env.CLOUD_ENDPOINT)

Body = dict[str, Any]


@dataclass(frozen=True)
class Requests:
    """Bodies and where they go, in order; `spare` ones only if spot is out."""

    project: str
    name: str
    found: VmShape
    owner: GceOwner
    described: str
    settings: Body
    groups: tuple[MachineGroup, ...]
    spare: tuple[MachineGroup, ...]
    chosen: Mapping[str, tuple[VmShape, float]] = field(default_factory=dict)  # group → machines and price

    @property
    def deadline(self) -> float:
        return float(self.settings["deadline"])

    def template(self, *, spot: bool) -> Body:
        name = self.name if spot == bool(self.found.spot) else f"{self.name}{ON_DEMAND}"
        return template.template(self.owner, name, self.described, self.found, self.settings, spot=spot)

    def template_of(self, group: MachineGroup) -> Body:
        """The template of a group: its own, where machines are chosen by price."""
        if group.name not in self.chosen:
            return self.template(spot=group.spot)
        vm_shape, price = self.chosen[group.name]
        record = {**self.settings, "worker": [*self.settings["worker"], "--price", f"{price:g}"]}
        return template.template(self.owner, group.name, self.described, vm_shape, record, spot=group.spot)

    def machine_of(self, group: MachineGroup) -> str:
        """Machine type of a group, where they differ; else ''."""
        return self.chosen[group.name][0].machine if group.name in self.chosen else ""

    def group(self, group: MachineGroup) -> Body:
        name = self.template_of(group)["name"]
        url = f"projects/{self.project}/"
        return groups.body(group, f"{url}global/instanceTemplates/{name}", self.described, url)

    def __iter__(self) -> Iterator[tuple[str, Body]]:
        if not self.chosen:
            yield "global/instanceTemplates", self.template(spot=bool(self.found.spot))
        for group in self.groups:
            if self.chosen:
                yield "global/instanceTemplates", self.template_of(group)
            yield f"regions/{group.region}/instanceGroupManagers", self.group(group)

    @property
    def script(self) -> str:
        """The bodies as they will be sent; the scripts inside are hostler's own, and long."""
        return json.dumps([_shortened(body) for _, body in self], indent=2)


def requests(fleet: Fleet, launch: Launch, project: str) -> Requests:
    _check_store(fleet, launch)
    if wishes.is_wish(fleet):
        return _by_price(fleet, launch, project)
    vm_shape, owner = shape.shape(fleet), owner_of(fleet)
    generation = cloud.number_of(launch.generation)
    name = owner.name(generation)
    made = groups.split(vm_shape, name, fleet.workers)
    spare = groups.instead(made) if vm_shape.spot == "prefer" else ()
    own = settings(fleet, launch, project, made, spare)
    described = owner.describe(int(generation))
    return Requests(project, name, vm_shape, owner, described, own, made, spare)


def _by_price(fleet: Fleet, launch: Launch, project: str) -> Requests:
    """The cheapest candidate is asked for, with `mix` the cheapest of each machine; the others stand in, one
    after the other."""
    owner, generation = owner_of(fleet), cloud.number_of(launch.generation)
    name = owner.name(generation)
    chosen: dict[str, tuple[VmShape, float]] = {}
    given = fleet.price  # stands over the table
    made: list[MachineGroup] = []
    candidates = wanted.tried(fleet)
    sizes = wanted.shares(candidates, fleet.workers, mix=bool(fleet.options.get("mix")))
    for candidate, size in zip(candidates, sizes, strict=True):
        own = f"{name}{CHOSEN}{_mark(candidate)}"
        if own not in chosen:
            chosen[own] = (
                shape.shape(wanted.narrowed(fleet, candidate)),
                candidate.price if given is None else given,
            )
            made.append(MachineGroup(candidate.region, own, candidate.zones, size, candidate.spot))
    first = tuple(group for group in made if group.size) or (made[0],)
    spare = tuple(group for group in made if group not in first)
    record = {**settings(fleet, launch, project, first, spare), **larger.told(made, chosen)}
    described = owner.describe(int(generation))
    vm_shape = chosen[first[0].name][0]
    return Requests(project, name, vm_shape, owner, described, record, first, spare, chosen)


def _mark(one: Candidate) -> str:
    """Few letters by which groups of a launch differ, the same for the same machines whatever they cost."""
    text = f"{one.machine} {one.gpu}:{one.gpus} {one.region} {one.spot}"
    return hashlib.sha256(text.encode()).hexdigest()[:5]


def beside(made: Requests, sizes: Mapping[tuple[str, str], int]) -> Requests:
    """The requests of a launch by price of which groups are there, with these sizes by (region, name): they
    stay, and only what they lack is asked for anew. Pure."""
    if not made.chosen or not any(sizes.values()):
        return made
    every = (*made.groups, *made.spare)
    machine_groups = [replace(group, size=sizes.get((group.region, group.name), 0)) for group in every]
    kept = [group for group in machine_groups if group.size]
    lack = max(0, sum(group.size for group in made.groups) - sum(group.size for group in kept))
    grown = (replace(kept[0], size=kept[0].size + lack), *kept[1:]) if kept else made.groups
    spare = tuple(group for group in machine_groups if not group.size)
    return replace(made, groups=grown, spare=spare)


def settings(
    fleet: Fleet,
    launch: Launch,
    project: str,
    made: tuple[MachineGroup, ...],
    spare: tuple[MachineGroup, ...],
) -> Body:
    """Settings that a VM gets; everybody who sees the project may read them."""
    templates = dict.fromkeys(group.name for group in (*made, *spare))
    deadline = cloud.deadline_of(launch)
    words = ["--billed", "--fleet", launch.generation or f"{fleet.name}/1", "--deadline", f"{deadline:.1f}"]
    words += ["--slots", str(fleet.slots)] if fleet.slots is not None else []
    words += ["--runs", str(fleet.runs_per_worker)] if fleet.runs_per_worker is not None else []
    words += ["--secrets", launch.vault] if launch.vault else []
    public = {*hostler_settings.names(), *EMULATED, env.PORTS}
    allowed = {name: value for name, value in launch.variables.items() if name in public}
    cache = fleet.cache or launch.cache
    return {
        "project": project,
        "store": launch.store,
        "deadline": deadline,
        "parcels": [list(parcel) for parcel in launch.parcels],
        "variables": {**allowed, **({env.CACHE: cache} if cache else {})},
        "worker": words,
        "groups": [groups.path(group) for group in (*made, *spare)],
        "templates": list(templates),
        **({"ssh_user": USER, "ssh_key": launch.ssh_key} if launch.ssh_key else {}),
    }


def notes(made: Requests, launch: Launch) -> list[str]:
    """Notes for a person before the launch is confirmed."""
    found, remaining = made.found, made.deadline - launch.at
    kind = (
        {True: "spot", False: "on demand"}.get(found.spot, "spot, on demand where spot is sold out")
        if isinstance(found.spot, bool)
        else "spot, on demand where spot is sold out"
    )
    if made.chosen:
        kind = "spot" if made.groups[0].spot else "on demand"
    gpus = f" with {found.gpus} × {found.gpu}" if found.gpus else ""
    sizes = ", ".join(f"{group.size} in {', '.join(group.zones)}" for group in made.groups)
    mixed = [_sized(made, group) for group in made.groups] if len(made.groups) > 1 and made.chosen else []
    return [
        *(mixed or [f"{found.machine}{gpus}, {kind}: {sizes}"]),
        *_next(made),
        f"removed by Compute Engine itself after {show_duration(remaining)}, "
        f"at {template.rfc3339(made.deadline)}",
        *([] if found.external_ip else [_INSIDE]),
        *([_meeting(found, launch)] if launch.resources.nodes > 1 and _is_default(found) else []),
    ]


def _sized(made: Requests, group: MachineGroup) -> str:
    found, price = made.chosen[group.name]
    kind = "spot" if group.spot else "on demand"
    return f"{group.size} × {found.machine}, {kind}, in {', '.join(group.zones)}, {price:g} an hour"


def _next(made: Requests) -> Iterator[str]:
    """Candidates after the first, in their order."""
    for group in made.spare if made.chosen else ():
        vm_shape, price = made.chosen[group.name]
        kind = "spot" if group.spot else "on demand"
        yield f"if there is none: {vm_shape.machine}, {kind}, in {', '.join(group.zones)}, {price:g} an hour"


def warnings(made: Requests, launch: Launch) -> list[str]:
    """Warnings about what may go wrong and cost money."""
    unsure = launch.resources.nodes > 1 and not _is_default(made.found)
    return [*shape.warnings(made.found), *([_meeting(made.found, launch)] if unsure else [])]


def _meeting(found: VmShape, launch: Launch) -> str:
    """Rule the network needs where one run takes several VMs. Nobody but its owner knows its rules."""
    name, ports = last(found.network) or "NETWORK", launch.variables.get(env.PORTS, "")
    where = f"TCP, {f'ports {ports}' if ports else 'any port'}"
    text = f"the {launch.resources.nodes} VMs of a run reach each other inside network {name} ({where})"
    if _is_default(found):
        return f"{text}, by its rule default-allow-internal"
    return (
        f"{text}: a rule must allow it (gcloud compute firewall-rules create {name}-internal "
        f"--network {name} --source-ranges 10.0.0.0/8 --allow tcp{f':{ports}' if ports else ''})"
    )


def _is_default(found: VmShape) -> bool:
    return last(found.network) == DEFAULT


def _check_store(fleet: Fleet, launch: Launch) -> None:
    if not launch.store.startswith("gs://"):
        raise UsageError(
            f"fleet {fleet.name}: VMs of Compute Engine cannot use the store {launch.store}",
            hint="use a bucket that their own account reaches (store: gs://bucket/runs)",
        )


def _shortened(body: Body) -> Body:
    items = body.get("properties", {}).get("metadata", {}).get("items")
    if not items:
        return body
    told = [
        {**item, "value": "(hostler's own)"} if item["key"].endswith("-script") else item for item in items
    ]
    return {**body, "properties": {**body["properties"], "metadata": {"items": told}}}
