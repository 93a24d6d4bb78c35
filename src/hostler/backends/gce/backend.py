"""Workers as VMs of managed groups: Compute Engine brings back what it preempts, wherever there is room.

Nothing is remembered here: what is a fleet's is written on it (labels, description). Every step of a launch
may be done twice: a name that is taken by the very same thing is as good as made. `stop` removes everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hostler import env
from hostler.backends import cloud
from hostler.backends.base import (
    Address,
    Capabilities,
    Launch,
    MachineInfo,
    Plan,
    Question,
    Thing,
    Undone,
    WorkerInfo,
)
from hostler.backends.gce import (
    entrance,
    hand_vm,
    lifetimes,
    manager,
    names,
    plans,
    reasons,
    removal,
    watching,
)
from hostler.backends.gce import shape as shapes
from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.images import building, gallery, sources, temporary
from hostler.backends.gce.manager import SecretVault
from hostler.backends.gce.names import last, owner_of
from hostler.backends.gce.plans import Requests
from hostler.backends.gce.tokens import client_of, is_loopback
from hostler.backends.gce.wish import chosen, quotas, wishes
from hostler.backends.gce.wish.buckets import location
from hostler.backends.images import BuildLeftover, Image, Recipe
from hostler.errors import CloudError
from hostler.remote import wheels
from hostler.spec.nearest import nearest
from hostler.spec.project import Fleet

CAPABILITIES = Capabilities(
    restarts=True,
    billed=True,
    makes_machines=True,
    grows=True,
    keeps_secrets=False,
    lasts=cloud.DAY,
    longest=plans.LONGEST,
)
ALIVE = frozenset({"PROVISIONING", "STAGING", "RUNNING", "REPAIRING"})
WORDS = {
    "PROVISIONING": "is being made",
    "STAGING": "is being made",
    "RUNNING": "runs",
    "STOPPING": "is being switched off",
    "SUSPENDED": "sleeps",
    "TERMINATED": "is switched off",
    "REPAIRING": "is being repaired",
}
DEBIAN = ("3.11.2", ("linux", "x86_64", "glibc", "2.36"))  # what the image has, unless another is chosen
OLDEST = ("3.10.0", ("linux", "x86_64", "glibc", "2.31"))


@dataclass
class GceBackend:
    connect: Callable[[Fleet], GceClient] = client_of
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = lambda line: None
    capabilities: Capabilities = field(default=CAPABILITIES)
    _client: GceClient | None = None  # by which it was asked last

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        project = str(fleet.options.get("project") or env.cloud_project() or "PROJECT")
        made = plans.requests(fleet, launch, project)
        commands = tuple(("POST", f"projects/{project}/{path}") for path, _ in made)
        notes = (f"store {launch.store}", *plans.notes(made, launch))
        return Plan(
            fleet,
            commands,
            notes,
            warnings=(*plans.warnings(made, launch), *(chosen.warnings(fleet) if made.chosen else ())),
            variables=launch.variables,
            script=made.script,
            workers=fleet.workers,
            launch=launch,
        )

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        client = self._connect(plan.fleet)
        launch = plan.launch or Launch("")
        made = plans.requests(plan.fleet, launch, client.project)
        if made.chosen:
            made = plans.beside(made, _sizes(client))
        launched, new = watching.GceWatch(client, made, self.pause, self.clock, self.say), list[str]()
        _check_free(client, made)
        try:
            make(client, made, new)
        except (GceRefusal, Undone) as error:
            raise (launched.undone(error) if new else error) from None
        launched.until_ready(new=bool(new))
        return [_worker(body, made.name) for body in self._instances(client, plan.fleet)]

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return [_worker(body) for body in self._instances(self._connect(fleet), fleet)]

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        """Remove all of it: a VM that is deleted is switched off first, and its worker saves what runs."""
        client = self._connect(fleet)
        worker_infos = [_worker(body) for body in self._instances(client, fleet)]
        self._remove(client, fleet, self._things(client, fleet))
        return worker_infos

    def logs(self, worker: WorkerInfo) -> bytes:
        """Output of the VM's serial port, asked as it was listed; it goes with the VM."""
        if self._client is None or not worker.log:
            return b""
        return watching.serial(self._client, worker.log).encode()

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """The machines are not there yet; what they will be like, or why there can be none."""
        try:
            client = self._connect(fleet)
            shape = shapes.shape(chosen.narrowed(fleet))
            if wishes.is_wish(fleet):  # its zones are asked for with its quotas
                next(client.list("regions"), None)
            else:
                for zone in shape.zones:
                    _check_zone(client, fleet, zone)
            if fleet.options.get("image") or fleet.options.get("family"):
                sources.check_image(client, shape.image)
        except CloudError as error:
            return [MachineInfo(fleet.name, error.message, error.hint)]
        return [self.likely(fleet)]

    def informed(self, fleet: Fleet, buckets: Sequence[str]) -> Fleet:
        if not wishes.is_wish(fleet):
            return fleet
        client = self._connect(fleet)
        places = {name: where for name in buckets if (where := location(client, name))}
        known = {chosen.QUOTAS: quotas.ask(client), chosen.BUCKETS: places}
        return replace(fleet, known={**fleet.known, **known})

    def machines(self, fleet: Fleet) -> Mapping[str, Fleet]:
        return chosen.machines(fleet)

    def lives(self, fleet: Fleet, number: int, now: float) -> Mapping[str, tuple[float, float]]:
        owner = owner_of(fleet)
        return lifetimes.lives(self._connect(fleet), owner.name(number), str(number), now)

    def likely(self, fleet: Fleet) -> MachineInfo:
        python, platform = _image_of(fleet)
        return MachineInfo(fleet.name, python=python, platform=platform)

    def completed(self, fleet: Fleet) -> Fleet:
        if wishes.is_wish(fleet):
            return fleet
        shape = shapes.shape(fleet)
        gpu = {"gpu": f"{shape.gpu}:{shape.gpus}"} if shape.attached else {}
        return replace(fleet, options={**fleet.options, "machine": shape.machine, **gpu})

    def remains(self, fleet: Fleet, *, everywhere: bool = False) -> Sequence[Thing]:
        return self._things(self._connect(fleet), fleet, everywhere=everywhere)

    def remove(self, fleet: Fleet, found: Sequence[Thing]) -> None:
        self._remove(self._connect(fleet), fleet, found)

    def vault(self, fleet: Fleet) -> SecretVault | None:
        return self._manager(self._connect(fleet), fleet)

    def keep(self, fleet: Fleet, launch: Launch, idle: float) -> WorkerInfo:
        client = self._connect(fleet)
        path = hand_vm.make(client, chosen.narrowed(fleet), launch, idle, self.say)
        return _worker(client.get(path))

    def address(self, fleet: Fleet, machine: str) -> Address:
        return entrance.address(self._connect(fleet), owner_of(fleet), machine)

    def check(self, fleet: Fleet, recipe: Recipe) -> None:
        temporary.check(recipe)
        client, shape = self._connect(fleet), shapes.shape(chosen.narrowed(fleet))
        for zone in shape.zones:
            _check_zone(client, fleet, zone)
        if recipe.vm:
            sources.vm(client, recipe.vm)
        else:
            sources.check_image(client, shape.image)

    def build(self, fleet: Fleet, recipe: Recipe) -> Image:
        client, shape = self._connect(fleet), shapes.shape(chosen.narrowed(fleet))
        gallery.sweep_up(client, [leftover for leftover in gallery.leavings(client) if leftover.over])
        made = building.Building(client, shape, recipe, fleet.cache or "", self.pause, self.clock, self.say)
        return gallery.one(client, made.run())

    def images(self, fleet: Fleet, family: str = "") -> Sequence[Image]:
        return gallery.images(self._connect(fleet), family)

    def drop(self, fleet: Fleet, found: Sequence[Image]) -> None:
        gallery.drop(self._connect(fleet), found)

    def gpu_family(self) -> str:
        parts = shapes.GPU_IMAGE.split("/")
        return f"{parts[1]}/{parts[-1]}"

    def leavings(self, fleet: Fleet) -> Sequence[BuildLeftover]:
        return gallery.leavings(self._connect(fleet))

    def sweep_up(self, fleet: Fleet, found: Sequence[BuildLeftover]) -> None:
        gallery.sweep_up(self._connect(fleet), found)

    def _connect(self, fleet: Fleet) -> GceClient:
        self._client = self.connect(fleet)
        return self._client

    def _manager(self, client: GceClient, fleet: Fleet) -> SecretVault | None:
        wanted = bool(fleet.options.get("secret_manager"))
        return SecretVault(manager.client_for(client), owner_of(fleet)) if wanted else None

    def _things(self, client: GceClient, fleet: Fleet, *, everywhere: bool = False) -> Sequence[Thing]:
        vault = self._manager(client, fleet)
        found = removal.things(client, owner_of(fleet), everywhere=everywhere)
        return [*found, *(vault.things(everywhere=everywhere) if vault else ())]

    def _remove(self, client: GceClient, fleet: Fleet, found: Sequence[Thing]) -> None:
        removal.remove(client, found)
        for thing in found:
            if thing.kind == manager.KIND:
                manager.discard(manager.client_for(client), thing.path)

    def _instances(self, client: GceClient, fleet: Fleet) -> Sequence[Body]:
        return [*client.aggregated("instances", filter=owner_of(fleet).filter)]


def open_backend(fleet: Fleet | None = None) -> GceBackend:
    return GceBackend()


def _check_zone(client: GceClient, fleet: Fleet, zone: str) -> None:
    """CloudError if there is none of this name, with those that are near."""
    try:
        client.get(f"zones/{zone}")
    except GceRefusal as error:
        if error.status != 404 or error.why != reasons.reason("notFound"):
            raise
        near = nearest(zone, (str(record["name"]) for record in client.list("zones")))
        raise CloudError(
            f"fleet {fleet.name}: no zone named {zone!r} in {client.project}",
            f"nearest: {', '.join(near)}" if near else "check `zones`",
        ) from None


def _check_free(client: GceClient, made: Requests) -> None:
    """The names are this fleet's, or nobody's: not the same fleet's with another store either."""
    wanted = (made.name, f"{made.name}{names.ON_DEMAND}", *made.chosen)
    for thing in removal.described(client):
        if thing["name"] in wanted and not made.owner.owns(thing):
            raise names.taken(thing, client.project)


def _sizes(client: GceClient) -> dict[tuple[str, str], int]:
    """Sizes of the groups that are there, by region and name."""
    found = removal.described(client)
    return {
        (last(record["region"]), record["name"]): int(record.get("targetSize", 0))
        for record in found
        if "region" in record
    }


def make(client: GceClient, made: Requests, new: list[str]) -> None:
    """Template and groups, those that are not there yet; groups that have shrunk are filled again."""
    for path, body in made:
        if make_one(client, path, body):
            new.append(body["name"])


def make_one(client: GceClient, path: str, body: Body) -> bool:
    """Whether it was not there."""
    try:
        client.insert(path, body)
        return True
    except GceRefusal as error:
        there = client.find(f"{path}/{body['name']}")
        if there is None or names.described(there) != names.described(body):
            raise (names.taken(there, client.project) if there else error) from None
        if int(there.get("targetSize", 0)) < int(body.get("targetSize", 0)):
            client.change("POST", f"{path}/{body['name']}/resize", size=body["targetSize"])
        return False


def _worker(body: Body, group: str = "") -> WorkerInfo:
    status = str(body.get("status", ""))
    words = WORDS.get(status, status.lower())
    zone = last(body.get("zone", ""))
    log = f"zones/{zone}/instances/{body['name']}"
    return WorkerInfo(
        body["name"], body["name"], status in ALIVE, f"{words} in {zone}", log=log, launch=group
    )


def _image_of(fleet: Fleet) -> tuple[str, tuple[str, ...]]:
    """Its Python and its C library, as far as they are known: what is brought must run there."""
    endpoint = env.cloud_endpoint()
    if endpoint and is_loopback(endpoint):  # emulated VMs are processes of this machine
        target = wheels.here()
        return ".".join(map(str, target.python)), target.platform
    given = fleet.options.get("image") or fleet.options.get("family")
    return OLDEST if given or shapes.shape(chosen.narrowed(fleet)).gpus else DEBIAN
