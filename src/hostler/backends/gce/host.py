"""A VM as its worker sees it: how it hears of its preemption, leaves its group, and takes the fleet down.

Standard library only, with the VM's own account. Every step may be repeated, by any worker of the fleet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.error import URLError

from hostler import env
from hostler.backends.gce import removal
from hostler.backends.gce.client import GOOGLE, GceClient
from hostler.backends.gce.names import last, region_of
from hostler.backends.gce.wish import larger
from hostler.backends.local.host import LocalHost
from hostler.backends.metadata import Token, get_attribute, get_metadata, put_guest_attribute, watch_metadata
from hostler.errors import CloudError
from hostler.frozen import dataclass

PREEMPTED = "instance/preempted"
WATCH = 60.0  # seconds that one question for a preemption stays open
PAUSE = 1.0  # before the next one, where the server does not answer


@dataclass(frozen=True)
class Vm:
    """Names by which Compute Engine knows this VM, and the settings that it came with."""

    name: str
    zone: str
    settings: Mapping[str, Any]
    client: GceClient = field(repr=False)

    @property
    def path(self) -> str:
        return f"zones/{self.zone}/instances/{self.name}"

    @property
    def group(self) -> str:
        """A group's VMs are called as the group is, and four letters."""
        return f"regions/{region_of(self.zone)}/instanceGroupManagers/{self.name.rpartition('-')[0]}"


class GceHost(LocalHost):
    name = "gce"
    comes_with_launch = True

    @cached_property
    def vm(self) -> Vm:
        settings = get_attribute("hostler-settings")
        client = GceClient(str(settings["project"]), env.cloud_endpoint() or GOOGLE, Token())
        return Vm(get_metadata("instance/name"), last(get_metadata("instance/zone")), settings, client)

    def place(self, now: Callable[[], float] = time.time) -> tuple[str, int]:
        """A zone has one VM of a name at a time; each boot of it is later than the one before."""
        try:
            return self.vm.path, int(now())
        except (OSError, ValueError, KeyError):  # the metadata server does not answer
            return "", 0

    def watch(self, on_notice: Callable[[], None]) -> None:
        """A thread of its own calls `on_notice` once this VM is about to be preempted."""
        words = (on_notice, threading.Event())
        threading.Thread(target=_watch, args=words, name="preemption", daemon=True).start()

    def born(self, now: Callable[[], float] = time.time) -> tuple[str, float]:
        """Nothing where Compute Engine does not tell."""
        vm = self.vm
        try:
            record = vm.client.get(vm.path)
            made = datetime.fromisoformat(record["creationTimestamp"]).timestamp()
        except (CloudError, KeyError, ValueError):
            return "", 0.0
        return str(record.get("id") or vm.name), max(0.0, now() - made)

    def report(self, state: str) -> None:
        try:
            put_guest_attribute("state", state)
        except (URLError, OSError):
            pass

    def leave(self) -> None:
        """Its group has one less to keep."""
        removal.leave(self.vm.client, self.vm.path, self.vm.group)

    def grow(self, workers: int, most: int) -> int | None:
        """This VM's group gets what is lacking: where it is, there was stock. Of two that grow different
        groups at once, the later one gives back what is too much."""
        client, own = self.vm.client, self.vm.group
        sizes = _sizes(client, self.vm.settings["groups"])
        lack = min(workers, most) - sum(sizes.values())
        if lack <= 0 or own not in sizes:
            return sum(sizes.values())
        client.change("POST", f"{own}/resize", size=sizes[own] + lack)
        sizes = _sizes(client, self.vm.settings["groups"])
        over = min(sum(sizes.values()) - most, lack)
        if over > 0:
            client.change("POST", f"{own}/resize", size=sizes[own] - over)
            sizes[own] -= over
        return sum(sizes.values())

    def enlarge(self, size: int, hourly: float, *, instead: bool = False) -> str:
        sizes = _sizes(self.vm.client, self.vm.settings["groups"])
        if instead and sizes.get(self.vm.group):
            sizes[self.vm.group] -= 1
        return larger.enlarge(self.vm.client, self.vm.settings, self.vm.group, sizes, size, hourly)

    def tear_down(self, settled: Callable[[], None]) -> None:
        """Its own group goes last: until then the VM, if it is taken away, is brought back and goes on."""
        client, settings, own = self.vm.client, self.vm.settings, self.vm.group
        removal.tear_down(client, [group for group in settings["groups"] if group != own], [])
        removal.abandon(client, self.vm.path, own)
        removal.tear_down(client, [own], settings["templates"])
        settled()
        removal.vanish(client, self.vm.path)


def _sizes(client: GceClient, groups: Sequence[str]) -> dict[str, int]:
    """Sizes of the groups that are there, by path."""
    found = {path: client.find(path) for path in groups}
    return {path: int(body.get("targetSize", 0)) for path, body in found.items() if body}


def this_host() -> GceHost:
    return GceHost()


def _watch(on_notice: Callable[[], None], never: threading.Event) -> None:
    mark = "0"
    while True:
        try:
            value, mark = watch_metadata(PREEMPTED, mark, WATCH)
        except (URLError, OSError):
            never.wait(PAUSE)
            continue
        if value.strip().upper() == "TRUE":
            on_notice()
            return
