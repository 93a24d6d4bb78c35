"""Controls of the emulated platform, in Python or as POST /_control/NAME with a JSON object.

Machines are named by their name alone, which is unique in most scenes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.emulators.gce import diary
from hostler.emulators.gce.api.refusal import Refusal
from hostler.emulators.gce.api.service import Gate
from hostler.emulators.gce.faults import Faults
from hostler.emulators.gce.machine import life
from hostler.emulators.gce.stock import Shortage
from hostler.emulators.gce.world import World
from hostler.emulators.gcs import GcsEmulator
from hostler.emulators.gcs.faults import DROPPED, LOST, busy, slow
from hostler.emulators.gcs.message import Answer, json_answer
from hostler.simulate import trace
from hostler.simulate.trace import Trace


class Control:
    """`gcs` is the storage emulator that is joined, if one is."""

    def __init__(self, world: World, gate: Gate, faults: Faults, storage: GcsEmulator | None) -> None:
        self._world, self._gate, self.faults, self.gcs = world, gate, faults, storage

    def stockout(self, zone: str, machine: str = "", *, spot_only: bool = False) -> None:
        """No more such machines there, from now on."""
        with self._world.lock:
            self._world.stock.shortages.add(Shortage(zone, machine, spot_only))
            self._world.diary.note(diary.OUT, zone)

    def restock(self, zone: str = "") -> None:
        """The end of all shortages, or of that zone's."""
        with self._world.lock:
            stock = self._world.stock
            self._world.diary.note(diary.BACK, zone)
            stock.shortages = {shortage for shortage in stock.shortages if zone and shortage.zone != zone}
            stock.places = {one: room for one, room in stock.places.items() if zone and one != zone}

    def write_trace(self, path: str) -> None:
        """Write the machines' history so far, for `hostler simulate --trace`."""
        trace.write(self.trace(), Path(path))

    def trace(self) -> Trace:
        with self._world.lock:
            world = self._world
            return diary.trace(world.diary.entries, world.meter.usage(), world.clock.scale)

    def places(self, zone: str, count: int) -> None:
        """Give the zone room for so many of our machines."""
        with self._world.lock:
            self._world.stock.places[zone] = count

    def quota(self, metric: str, limit: float, region: str = "") -> None:
        """Set a quota of the project, or of one region."""
        with self._world.lock:
            self._world.stock.limits[region, metric] = float(limit)

    def speed(self, machine: str, factor: float) -> None:
        """Machines of this type that start from now on are so many times as fast as others. All are processes
        of one machine: their trainings read the factor in $EMULATED_SPEED, and take their time by it."""
        if factor <= 0:
            raise LookupError(f"a speed of {factor} is not above 0")
        with self._world.lock:
            self._world.speeds[machine] = float(factor)

    def preempt(self, name: str, *, notice: bool = True) -> None:
        with self._world.lock:
            life.preempt(self._world, self._world.machine_named(name), notice=notice)

    def host_error(self, name: str) -> None:
        with self._world.lock:
            life.host_error(self._world, self._world.machine_named(name))

    def kill_processes(self, name: str) -> None:
        """Every process of the machine dies; the machine itself stays on."""
        with self._world.lock:
            guest = self._world.machine_named(name).guest
            for pid in guest.pids() if guest else ():
                _kill(pid)

    def lose_answer(self, method: str = "*.insert", *, times: int = 1) -> None:
        """The next such requests take effect, and the connection is reset instead of an answer."""
        self.faults.next(LOST, method, times=times)

    def drop(self, method: str = "*", *, times: int = 1) -> None:
        """The next such requests have no effect, and the connection is reset."""
        self.faults.next(DROPPED, method, times=times)

    def fail(self, status: int, method: str = "*", *, times: int = 1) -> None:
        """The next such requests are refused: 429, 503, …"""
        self.faults.next(busy(status), method, times=times)

    def delay(self, seconds: float, method: str = "*", *, times: int = 1) -> None:
        """The next such requests are answered so much later; real seconds."""
        self.faults.next(slow(seconds), method, times=times)

    def remove_bucket(self, name: str) -> None:
        """The bucket vanishes with all it holds."""
        if self.gcs is None:
            raise LookupError("emulated storage was not started: give `buckets`")
        self.gcs.remove_bucket(name)

    def disable_api(self, on: bool = True) -> None:
        self._gate.disabled = on

    def refuse_credentials(self, on: bool = True) -> None:
        self._gate.refusing = on

    def answer(self, name: str, given: Mapping[str, Any]) -> Answer:
        """A call over HTTP."""
        act: Callable[..., None] | None = getattr(self, name, None) if name in CALLS else None
        if act is None:
            return Refusal(
                404, "notFound", f"unknown control call {name}; known: {', '.join(CALLS)}"
            ).answer()
        try:
            act(**given)
        except (TypeError, LookupError, OSError) as error:
            return Refusal(400, "invalid", str(error)).answer()
        return json_answer({})


CALLS = (
    *("stockout", "restock", "places", "quota", "speed", "preempt", "host_error", "kill_processes"),
    *(
        "write_trace",
        "lose_answer",
        "drop",
        "fail",
        "delay",
        "remove_bucket",
        "disable_api",
        "refuse_credentials",
    ),
)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
