"""The launch of a fleet, watched until its first VM reports: failover, and a bounded wait.

Whoever watches may go away at any moment: the groups go on. A launch that comes to nothing (no capacity, no
quota, VMs that never report) is taken down again, with the reason, so that nothing waits at somebody's cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hostler import settings
from hostler.backends import cloud
from hostler.backends.base import Undone
from hostler.backends.capacity import Filling, MachineGroup, Move, decide, refusals
from hostler.backends.cloud import Again, GiveUp, KeepWaiting, Ready
from hostler.backends.gce import advice, groups, names, reasons, removal
from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.names import last
from hostler.backends.gce.plans import Requests
from hostler.errors import CloudError

LOOK = 1.0
_SILENT = "check that its image starts and its account reaches the bucket: docs/gce.md"


@dataclass
class GceWatch:
    client: GceClient
    made: Requests
    pause: Callable[[float], None]
    clock: Callable[[], float]
    say: Callable[[str], None]
    _seen: dict[str, tuple[float, float]] = field(default_factory=dict)  # VM → first and last seen to run

    def until_ready(self, *, new: bool = True) -> None:
        what = "is made" if new else "is there already"
        self.say(f"{self.made.name} {what}; waiting for its first VM (Ctrl-C: it goes on by itself)")
        self._until_filled()
        self._until_reported()

    def _until_filled(self) -> None:
        """Until VMs run; CloudError if there will be none."""
        timing, active, spare, machine_groups = (
            settings.timing(),
            list(self.made.groups),
            list(self.made.spare),
            list[MachineGroup](),
        )
        advised = advice.ask(self.client, self.made.found, active) if len(active) > 1 else {}

        def look(waited: float) -> Ready | GiveUp | Again | KeepWaiting:
            view = [self._filling(group) for group in active]
            done = decide(
                view,
                [group for group in spare if group not in active],
                waited=waited,
                patience=timing.machines,
                settled=timing.stockout,
                advice=advised,
                left=machine_groups,
            )
            if isinstance(done, Ready):
                self._tell_short(view)
            if isinstance(done, GiveUp):
                return replace(done, why=f"{self.made.name}: {done.why}; it was taken down")
            if not isinstance(done, Move):
                return done
            try:
                self._move(done)
            except GceRefusal as error:
                raise self.undone(error) from None
            active.extend(group for group, _ in done.sizes if group not in active)
            machine_groups.extend(group for group, _ in done.sizes[1:])
            return Again()

        self._watch(look)

    def _watch(self, look: Callable[[float], Ready | GiveUp | Again | KeepWaiting]) -> None:
        cloud.watch(look, self._taken_down, clock=self.clock, pause=self.pause, every=LOOK)

    def _tell_short(self, view: Sequence[Filling]) -> None:
        running, wanted = sum(f.running for f in view), sum(f.target for f in view)
        if 0 < running < wanted:
            why = refusals([f for f in view if f.is_short])
            self.say(
                f"{running} of {wanted} VMs run{f' ({why})' if why else ''}; "
                "the others start when machines become available"
            )

    def _filling(self, group: MachineGroup) -> Filling:
        record = self.client.find(groups.path(group))
        if record is None:  # it finished and closed itself while nobody looked
            return Filling(group, 0, 0)
        members = [*self.client.managed(groups.path(group))]
        running = [member for member in members if member.get("instanceStatus") == "RUNNING"]
        self._see(last(one["instance"]) for one in running)
        why = [
            reasons.of_machine(str(e.get("code", "")), str(e.get("message", ""))) for e in _errors(members)
        ]
        return Filling(group, int(record["targetSize"]), len(running), tuple(dict.fromkeys(why)))

    def _move(self, done: Move) -> None:
        (into, _), *out = done.sizes
        regions = " and ".join(dict.fromkeys(group.region for group, _ in out))
        machine = f"{self.made.machine_of(into)} in " if self.made.machine_of(into) else ""
        place = f"{machine}{into.region}{'' if into.spot else ', on demand'}"
        self.say(f"none left in {regions}: trying {place}")
        for group, size in done.sizes:
            if self.client.find(groups.path(group)) is not None:
                self.client.change("POST", f"{groups.path(group)}/resize", size=size)
                continue
            for path, body in self._anew(group, size):
                if self.client.find(f"{path}/{body['name']}") is None:
                    self.client.insert(path, body)

    def _anew(self, group: MachineGroup, size: int) -> Iterator[tuple[str, Body]]:
        yield "global/instanceTemplates", self.made.template_of(group)
        yield f"regions/{group.region}/instanceGroupManagers", {**self.made.group(group), "targetSize": size}

    def _until_reported(self) -> None:
        """Until a worker has begun, or all have left again; CloudError if VMs fail, or say nothing at all."""
        self._watch(self._reported)

    def _reported(self, waited: float) -> Ready | GiveUp | KeepWaiting:
        patience = settings.timing().report
        there = [*self.client.aggregated("instances", filter=self.made.owner.filter)]
        own = [body for body in there if body["name"].startswith(f"{self.made.name}-")]
        self._see(body["name"] for body in own)
        states = {body["name"]: self._state(body) for body in own}
        if not own:
            return self._done()
        if any(state.startswith(("working", "leaving")) for state in states.values()):
            return Ready()
        failed = {name: state for name, state in states.items() if state.startswith("failed")}
        if failed and len(failed) == len(own):
            name, state = next(iter(failed.items()))
            return GiveUp(f"{name}: {state}; the fleet was taken down\n{self._last_words(own)}")
        if waited < patience:
            return KeepWaiting()
        words = f"no VM of {self.made.name} has reported within {patience:g} s"
        return GiveUp(f"{words}; it was taken down\n{self._last_words(own)}", _SILENT, later=True)

    def _done(self) -> Ready | GiveUp:
        """No VM is there: the fleet has finished and taken itself down, or all have given up."""
        every = (*self.made.groups, *(self.made.spare if self.made.chosen else ()))
        there = [record for group in every if (record := self.client.find(groups.path(group)))]
        if not there or any(int(found["targetSize"]) for found in there):
            return Ready()
        why = f"all VMs of {self.made.name} left before they began; it was taken down"
        return GiveUp(why, _SILENT)

    def _state(self, body: Body) -> str:
        path = f"zones/{last(body['zone'])}/instances/{body['name']}/getGuestAttributes"
        try:
            record = self.client.find(path, queryPath="hostler/")
        except GceRefusal:
            return ""
        items = ((record or {}).get("queryValue") or {}).get("items") or []
        return next((str(item["value"]) for item in items if item.get("key") == "state"), "")

    def _last_words(self, own: list[Body]) -> str:
        """Last lines that the first VM printed."""
        if not own:
            return ""
        path = f"zones/{last(own[0]['zone'])}/instances/{own[0]['name']}"
        return cloud.last_lines(serial(self.client, path))

    def undone(self, error: CloudError) -> Undone:
        """Remove the parts of a launch that was refused in the middle."""
        number = names.generation_of(f"{self.made.name}-vm00")
        found = removal.things(self.client, self.made.owner)
        self._see(one.name for one in found if one.kind == removal.VM and one.generation == number)
        removal.remove(self.client, [one for one in found if one.generation == number])
        return Undone(error.message, error.hint, seconds=self._seconds(), later=False)

    def _taken_down(self, done: GiveUp) -> Undone:
        """After all of the launch is gone; what it failed of is what is told."""
        record, there = self.made.settings, self._last_look()
        removal.tear_down(self.client, record["groups"], record["templates"])
        self._see(there)
        return Undone(done.why, done.hint, seconds=self._seconds(), later=done.later)

    def _last_look(self) -> list[str]:
        """VMs that were there when it was last looked."""
        latest = max((until for _, until in self._seen.values()), default=0.0)
        return [name for name, (_, until) in self._seen.items() if latest - until <= LOOK]

    def _see(self, running: Iterable[str]) -> None:
        now = self.clock()
        for name in list(running):
            self._seen[name] = (self._seen.get(name, (now, now))[0], now)

    def _seconds(self) -> float:
        """How long VMs were there; each may have come a look before it was seen."""
        return sum(until - since + LOOK for since, until in self._seen.values())


def serial(client: GceClient, path: str) -> str:
    """Output of a VM; '' if it is gone."""
    try:
        record = client.find(f"{path}/serialPort")
    except GceRefusal:
        return ""
    return str((record or {}).get("contents", ""))


def _errors(members: list[Body]) -> Iterator[Body]:
    for member in members:
        yield from ((member.get("lastAttempt") or {}).get("errors") or {}).get("errors") or ()
