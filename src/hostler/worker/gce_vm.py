"""The VM that a worker runs on, as it sees itself: how it leaves its group, and how it takes the fleet down.

Standard library only, with the VM's own account. Every step may be repeated, by any worker of the fleet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.error import URLError

from hostler import env
from hostler.backends.gce import metadata, removal
from hostler.backends.gce.client import GOOGLE, Client
from hostler.backends.gce.names import last, region_of
from hostler.errors import CloudError

PREEMPTED = "instance/preempted"
WATCH = 60.0  # seconds that one question for a preemption stays open
PAUSE = 1.0  # before the next one, where the server does not answer


@dataclass(frozen=True)
class Vm:
    name: str
    zone: str
    settings: Mapping[str, Any]
    client: Client = field(repr=False)

    @property
    def path(self) -> str:
        return f"zones/{self.zone}/instances/{self.name}"

    @property
    def group(self) -> str:
        """A group's VMs are called as the group is, and four letters."""
        return f"regions/{region_of(self.zone)}/instanceGroupManagers/{self.name.rpartition('-')[0]}"

    def born(self, now: Callable[[], float] = time.time) -> tuple[str, float]:
        """Its number, and how many seconds ago it was made; nothing where Compute Engine does not tell."""
        try:
            found = self.client.get(self.path)
            made = datetime.fromisoformat(found["creationTimestamp"]).timestamp()
        except (CloudError, KeyError, ValueError):
            return "", 0.0
        return str(found.get("id") or self.name), max(0.0, now() - made)

    def leave(self) -> None:
        """This VM alone: its group has one less to keep."""
        removal.leave(self.client, self.path, self.group)

    def tear_down(self, done: Callable[[], None]) -> None:
        """The whole launch, this VM last; `done` is called when all but this VM is gone."""
        removal.abandon(self.client, self.path, self.group)
        removal.tear_down(self.client, self.settings["groups"], self.settings["templates"])
        done()
        removal.vanish(self.client, self.path)

    def report(self, state: str) -> None:
        report(state)


def this_vm() -> Vm:
    found = metadata.attribute("hostler-settings")
    client = Client(str(found["project"]), env.gce_endpoint() or GOOGLE, metadata.Token())
    return Vm(metadata.get("instance/name"), last(metadata.get("instance/zone")), found, client)


def report(state: str) -> None:
    """Tell whoever watches the launch; nothing depends on it."""
    try:
        metadata.say("hostler/state", state)
    except (URLError, OSError):
        pass


def watch_preemption(notice: Callable[[], None]) -> None:
    """Call `notice` once, from a thread of its own, when this VM is about to be preempted."""
    threading.Thread(target=_watch, args=(notice, threading.Event()), name="preemption", daemon=True).start()


def _watch(notice: Callable[[], None], never: threading.Event) -> None:
    mark = "0"
    while True:
        try:
            value, mark = metadata.watch(PREEMPTED, mark, WATCH)
        except (URLError, OSError):
            never.wait(PAUSE)
            continue
        if value.strip().upper() == "TRUE":
            notice()
            return
