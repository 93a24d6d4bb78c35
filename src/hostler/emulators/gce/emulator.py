"""The emulator as a test or a demo uses it: started on a loopback port, gone with the block.

    with emulator(buckets=["b"], scale=10) as gce:
        os.environ.update(gce.environ())

Machines are real processes, in folders of their own. Whatever happens to the process that holds the emulator,
none of them outlives it. Linux only.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from hostler import env
from hostler.emulators.gce.api.cloudbilling import PATH as BILLING
from hostler.emulators.gce.api.cloudbilling import BillingCatalogue
from hostler.emulators.gce.api.refusal import not_found, ordered
from hostler.emulators.gce.api.routes import Route
from hostler.emulators.gce.api.secretmanager import SecretManager
from hostler.emulators.gce.api.service import Gate, Seen, Service, locate
from hostler.emulators.gce.clock import Clock
from hostler.emulators.gce.control import Control
from hostler.emulators.gce.faults import Faults
from hostler.emulators.gce.machine import leaving
from hostler.emulators.gce.machine.machine import Machine
from hostler.emulators.gce.meter import Bill, Price, Usage, bill
from hostler.emulators.gce.pace import AtDeadline, Pace
from hostler.emulators.gce.world import World
from hostler.emulators.gcs import GcsEmulator
from hostler.emulators.gcs.faults import Fault
from hostler.emulators.gcs.message import Answer, Refusal, Request
from hostler.emulators.gcs.tokens import Tokens
from hostler.emulators.serving import Handler, LoopbackServer
from hostler.errors import MachineError


def emulator(
    project: str = "emulated",
    *,
    buckets: Sequence[str] = (),
    scale: float = 1.0,
    pace: Pace | None = None,
    at_deadline: AtDeadline = AtDeadline.KEEPS,
    strict: bool = False,
    guest_env: Mapping[str, str] | None = None,
    sshd: bool = False,
    seed: int = 0,
) -> GceEmulator:
    """`scale`: emulated seconds in a real one. `strict`: requests need a token from a metadata server.
    `guest_env`: more variables for the machines' processes. `sshd`: machines have one, which takes root.
    With `buckets`, gs:// is emulated too."""
    if sshd:
        _check_sshd()
    tokens = Tokens()
    world = World(
        project=project,
        root=Path(),
        clock=Clock(scale),
        pace=pace or Pace(),
        at_deadline=at_deadline,
        tokens=tokens,
        chance=random.Random(seed),
        guest_env=dict(guest_env or {}),
        sshd=sshd,
    )
    storage = GcsEmulator(*buckets, strict=strict, tokens=tokens) if buckets else None
    return GceEmulator(world, storage, Gate(strict=strict))


class GceEmulator(Control):
    """The emulator's state and actions; `Control` has those on the platform."""

    def __init__(self, world: World, storage: GcsEmulator | None, gate: Gate) -> None:
        super().__init__(world, gate, Faults(), storage)
        self._service = Service(world, gate)
        self.secret_manager = SecretManager(world.project, self._may_enter)
        self.billing = BillingCatalogue(self._may_enter)
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> GceEmulator:
        self._world.root = Path(tempfile.mkdtemp(prefix="hostler-gce-"))
        if self.gcs is not None:
            self.gcs.__enter__()
        self._server = Server(self._service, self.faults, self, self.secret_manager, self.billing)
        self._world.guest_env = {**self._places(), **self._world.guest_env}
        self._world.agenda.start()
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="gce", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._world.agenda.stop()
        with self._world.lock:
            for machine in list(self._world.machines.values()):
                leaving.discard(self._world, machine)
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        if self.gcs is not None:
            self.gcs.__exit__(kind, error, trace)
        shutil.rmtree(self._world.root, ignore_errors=True)

    @property
    def project(self) -> str:
        return self._world.project

    @property
    def host(self) -> str:
        if self._server is None:
            raise RuntimeError("the emulator runs inside its `with` block only")
        return self._server.host

    @property
    def url(self) -> str:
        """The API's base address; `/projects/...` follows."""
        return f"http://{self.host}/compute/v1"

    @property
    def requests(self) -> list[Seen]:
        """Everything that was asked of the API so far, with the answers."""
        return self._service.requests

    def environ(self) -> dict[str, str]:
        """Leads hostler and Google's clients here: the API, storage if it is emulated too, and tokens if they
        are needed; if not, nobody's own credentials are looked for."""
        return {**self._places(), **(_metadata(self.host) if self._gate.strict else {})}

    def machines(self) -> list[Machine]:
        with self._world.lock:
            return list(self._world.machines.values())

    def names(self, status: str = "RUNNING") -> list[str]:
        """Machines in that state."""
        return sorted(machine.name for machine in self.machines() if machine.status == status)

    def pids(self, name: str) -> set[int]:
        """Processes of a machine."""
        with self._world.lock:
            guest = self._world.machine_named(name).guest
            return guest.pids() if guest else set()

    def serial(self, name: str) -> str:
        with self._world.lock:
            file = leaving.folder_of(self._world, self._world.machine_named(name)) / "serial.log"
            return file.read_text(errors="replace") if file.exists() else ""

    def left(self) -> list[str]:
        """Everything that still costs or clutters: machines, disks, groups, templates, as paths."""
        with self._world.lock:
            world = self._world
            found = [machine.path for machine in world.machines.values()]
            found += [f"projects/{world.project}/zones/{zone}/disks/{name}" for zone, name in world.disks]
            found += [group.path for group in world.groups.values()]
            found += [scope.of("instanceTemplates", name) for scope, name in world.templates]
            found += [f"projects/{world.project}/secrets/{name}" for name in self.secret_manager.secrets]
            return sorted(found)

    def usage(self) -> list[Usage]:
        """Every stretch of machine and disk so far, in emulated seconds."""
        with self._world.lock:
            return self._world.meter.usage()

    def bill(self, machine: Price, disk: Price = lambda _: 0.0) -> Bill:
        """The total cost so far, at these prices in dollars an hour."""
        return bill(self.usage(), machine, disk)

    def now(self) -> float:
        """Emulated seconds since the beginning."""
        return self._world.clock.now()

    def _may_enter(self, authorization: str) -> bool:
        gate = self._gate
        return not gate.refusing and (not gate.strict or self._world.tokens.good(authorization))

    def _places(self) -> dict[str, str]:
        found = {env.CLOUD_ENDPOINT: f"http://{self.host}/compute/v1"}
        return found | ({"STORAGE_EMULATOR_HOST": self.gcs.url} if self.gcs is not None else {})


def _check_sshd() -> None:
    if os.geteuid() != 0:
        raise MachineError("emulated machines with an sshd need root", "sudo, or without sshd")
    if not shutil.which("sshd", path=os.pathsep.join([os.defpath, "/usr/sbin", "/sbin"])):
        raise MachineError("sshd is not installed on this machine", "install OpenSSH's server")


def _metadata(host: str) -> dict[str, str]:
    return {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "GCE_METADATA_ROOT": host}


# HTTP of the emulator: the API, tokens for whoever has no machine, control calls, faults in between.


CONTROL = "/_control/"
SECRETS = "/v1/projects/"  # where Secret Manager begins, which has a host of its own at Google


class Server(LoopbackServer):
    def __init__(
        self,
        service: Service,
        faults: Faults,
        control: Control,
        secret_manager: SecretManager,
        billing: BillingCatalogue,
    ) -> None:
        super().__init__(_Handler)
        self.service, self.faults, self.control = service, faults, control
        self.secret_manager, self.billing = secret_manager, billing

    def aside(self, request: Request) -> Answer:
        """Answer requests outside the API: control calls, and the local machine's metadata server."""
        if request.path.startswith(CONTROL):
            return self.control.answer(request.path.removeprefix(CONTROL), request.json())
        try:
            return self.service.world.tokens.answer(request)
        except Refusal as refusal:
            return refusal.as_json()


class _Handler(Handler):
    server: Server

    def answer(self) -> None:
        path, query, headers = self.head()
        request = Request(self.command, path, query, headers, self.rfile.read(self.length()))
        at = locate(request)
        if at is not None:
            self._call(request, at)
        elif request.path.startswith(SECRETS):
            self._send(self.server.secret_manager.answer(request))
        elif request.path.startswith(BILLING):
            self._send(self.server.billing.answer(request))
        elif request.path == "/" or request.path.startswith((CONTROL, "/computeMetadata")):
            self._send(self.server.aside(request))
        else:
            self._send(not_found(request.path).answer())

    def _call(self, request: Request, at: Route) -> None:
        service = self.server.service
        fault = self.server.faults.choose(at.method) or Fault(done=True)
        answer = service.answer(request, at) if fault.done else Answer()
        if fault.status:
            plain = ordered(fault.status)
            answer = plain.answer() if plain else fault.mark(fault.answer().as_json())
        service.remember(request, at, answer, heard=not fault.reset)
        if fault.delay:
            time.sleep(fault.delay)
        if fault.reset:
            self.reset()
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send(answer.status, answer.body, answer.headers)
