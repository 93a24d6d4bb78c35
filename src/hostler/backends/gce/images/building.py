"""Builds an image: makes a temporary VM, watches it, switches it off, images it, names its family.

An image comes without its family and gets it last, when it is whole: a half-made one is never what a family
means. However it ends, the VM, its disk and an image that is in no family are removed; where Compute Engine
cannot be asked, its own timer removes the VM, and the labels tell `gallery.py` the rest.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hostler import settings
from hostler.backends.capacity import REGION, ZONE
from hostler.backends.gce import removal
from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.images import sources, temporary
from hostler.backends.gce.images.builder import SAY
from hostler.backends.gce.names import last
from hostler.backends.gce.shape import VmShape
from hostler.backends.gce.template import rfc3339
from hostler.backends.images import Recipe
from hostler.errors import CloudError, CloudUnavailable
from hostler.spec.units import show_duration

LOOK = 1.0
FAILED = "hostler: failed: "  # where there is no Python to say it
OFF = ("STOPPING", "TERMINATED", "SUSPENDING", "SUSPENDED")
_SCRIPT = "its output is above; fix the script, then run the same command again"


@dataclass
class Building:
    client: GceClient
    found: VmShape
    recipe: Recipe
    cache: str
    pause: Callable[[float], None]
    clock: Callable[[], float]
    say: Callable[[str], None]
    now: Callable[[], float] = time.time
    word: str = field(default_factory=lambda: secrets.token_hex(8))
    _made: list[str] = field(default_factory=list)  # paths of what may be there by now
    _marked: dict[str, str] = field(default_factory=dict)
    _stopped: bool = False
    _published: bool = False
    _at: int = 0  # how far the serial port was read
    _rest: str = ""

    def run(self) -> str:
        """The path of the new image."""
        try:
            vm = self._begin()
            self._until_ready(vm)
            self.say("switching the VM off")
            self._stopped = True
            self.client.change("POST", f"{vm}/stop")
            image = self._image(vm)
            self._publish(image)
            return image
        finally:
            self._clear()

    @property
    def name(self) -> str:
        return f"{temporary.PREFIX}{self.word}"

    def _begin(self) -> str:
        """The path of a VM that runs, in the first zone that has one."""
        lasts = temporary.lasts(self.recipe)
        until = self.now() + lasts + settings.timing().imaging
        self._marked = temporary.labels(self.recipe, until)
        zones, disk = self._copied() if self.recipe.vm else (self.found.zones, "")
        out = list[str]()
        for zone in zones:
            path = f"zones/{zone}/instances/{self.name}"
            self._made += [path, f"zones/{zone}/disks/{self.name}"]
            made = temporary.body(
                self.name, zone, self.found, self.recipe, self.word, self._marked, self.cache, disk
            )
            try:
                self.client.insert(f"zones/{zone}/instances", made)
            except GceRefusal as error:
                if error.why.then not in (ZONE, REGION):
                    raise
                out.append(f"{zone}: {error.why.words}")
                self.say(out[-1])
                continue
            self.say(f"VM {self.name} runs in {zone}; Compute Engine removes it {_at(self.now() + lasts)}")
            return path
        raise CloudUnavailable(
            f"no VM is available to build {self.recipe.family}: {'; '.join(out)}",
            "name other zones or another machine, or try later",
        )

    def _copied(self) -> tuple[Sequence[str], str]:
        """A copy of a VM's boot disk: the VM itself is not touched."""
        vm = sources.vm(self.client, self.recipe.vm)
        zone, source = last(vm["zone"]), sources.boot_disk(vm)
        if vm.get("status") == "RUNNING":
            self.say(f"{self.recipe.vm} runs: data not yet written to its disk will not be in the image")
        self._made.append(f"zones/{zone}/disks/{self.name}")
        made = {
            "name": self.name,
            "sourceDisk": self.client.url(f"zones/{zone}/disks/{source}"),
            "labels": self._marked,
        }
        self.client.insert(f"zones/{zone}/disks", made)
        return (zone,), self.client.url(f"zones/{zone}/disks/{self.name}")

    def _until_ready(self, vm: str) -> None:
        """Until it has said that all is done; CloudError if it says otherwise, goes off, or says nothing."""
        begun, patience = self.clock(), settings.timing().report
        while True:
            there = self.client.find(vm)
            state = self._state(vm) if there else ""
            self._pass_on(vm)
            if state == f"done {self.word}":
                return
            if state.startswith("failed: "):
                raise CloudError(f"{self.recipe.family}: {state[len('failed: ') :]}", _SCRIPT)
            if there is None or there.get("status") in OFF:
                raise CloudError(f"{self.recipe.family}: the VM went off before it was ready", _SCRIPT)
            waited = self.clock() - begun
            if not state and waited >= patience:
                raise CloudError(
                    f"{self.recipe.family}: the VM has not begun within {show_duration(patience)}",
                    "check that the base image starts, and runs startup scripts",
                )
            if waited >= patience + self.recipe.seconds:
                raise CloudError(f"{self.recipe.family}: the VM did not finish in time and gave no reason")
            self.pause(LOOK)

    def _state(self, vm: str) -> str:
        record = self.client.find(f"{vm}/getGuestAttributes", queryPath="hostler/") or {}
        items = (record.get("queryValue") or {}).get("items") or []
        return next((str(item["value"]) for item in items if item.get("key") == "image"), "")

    def _pass_on(self, vm: str) -> None:
        """Say the lines for people that the VM has printed since."""
        try:
            record = self.client.find(f"{vm}/serialPort", start=self._at) or {}
        except GceRefusal:
            return  # nothing depends on it
        self._at = int(record.get("next", self._at))
        *lines, self._rest = (self._rest + str(record.get("contents", ""))).split("\n")
        for line in lines:
            if SAY in line:
                self.say(f"| {line.partition(SAY)[2].rstrip()}")
            elif FAILED in line:
                raise CloudError(f"{self.recipe.family}: {line.partition(FAILED)[2]}", _SCRIPT)

    def _image(self, vm: str) -> str:
        """The path of the image, whole and in no family."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self.now()))
        path = f"global/images/{self.recipe.family}-{stamp}-{self.word[:4]}"
        self.say(f"making {last(path)}")
        self._made.append(path)
        disk = self.client.url(vm.replace("/instances/", "/disks/"))
        made = {"name": last(path), "sourceDisk": disk, "labels": self._marked}
        self._patiently(
            self.client.begin("POST", "global/images", {**made, "description": self._described()})
        )
        record = self.client.get(path)
        if record.get("status") != "READY":
            raise CloudError(f"{last(path)} could not be made: {record.get('status', '')}", "try again")
        return path

    def _patiently(self, operation: Body) -> None:
        """Large disks take longer than other things do."""
        end = self.clock() + settings.timing().imaging
        while True:
            try:
                return self.client.finish(operation)
            except CloudUnavailable:
                if self.clock() >= end:
                    raise

    def _described(self) -> str:
        begun = f"VM {self.recipe.vm}" if self.recipe.vm else self.found.image
        what = [one for one in (self.recipe.packages, self.recipe.script and self.recipe.script_name) if one]
        return json.dumps({"by": "hostler", "from": begun, "with": what})

    def _publish(self, image: str) -> None:
        self.client.change("PATCH", image, {"family": self.recipe.family})
        self._published = True

    def _clear(self) -> None:
        """All that is temporary; what cannot be removed is named, with who removes it then."""
        if not self._published:
            self.say("nothing is published; what was made is removed")
        kinds = ("/instances/", "/disks/", "/images/")
        for kind in kinds[:2] if self._published else kinds:
            for path in [one for one in dict.fromkeys(self._made) if kind in one]:
                try:
                    self._discard(path)
                except CloudError as error:
                    self._left(path, error)

    def _discard(self, path: str) -> None:
        """Remove a thing; an interrupt does not stop the removal unless it comes again."""
        try:
            removal.discard(self.client, path)
        except KeyboardInterrupt:
            self.say(f"{path} is being removed; Ctrl-C again leaves it, for hostler doctor --remove later on")
            removal.discard(self.client, path)

    def _left(self, path: str, error: CloudError) -> None:
        self.say(f"{path} may still be there: {error.message}")
        if "/instances/" in path and not self._stopped:
            self.say("Compute Engine removes it by its own timer")
        else:
            self.say("hostler doctor --remove removes it when its time is over")


def _at(moment: float) -> str:
    return f"at {rfc3339(moment)} at the latest"
