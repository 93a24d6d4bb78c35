"""The life of a machine: it gets a place, boots, runs, is told to end, is off, is gone.

Every function is called under the world's lock, and none of them waits: what takes time is put on the agenda,
and the guest reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from hostler import env
from hostler.emulators.gce import diary
from hostler.emulators.gce.api.operations import Finish
from hostler.emulators.gce.api.refusal import Failure
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import board as boards
from hostler.emulators.gce.machine import contents
from hostler.emulators.gce.machine.guest import SHUTDOWN, STARTUP, Guest
from hostler.emulators.gce.machine.leaving import GONE, cut_power, discard, folder_of, tell_started
from hostler.emulators.gce.machine.machine import (
    ON,
    PROVISIONING,
    REPAIRING,
    RUNNING,
    STAGING,
    STOPPING,
    TERMINATED,
    Cause,
    Machine,
)
from hostler.emulators.gce.machine.metadata import MetadataServer
from hostler.emulators.gce.meter import Usage
from hostler.emulators.gce.pace import AtDeadline
from hostler.emulators.gce.world import World

SPEED = "EMULATED_SPEED"  # variable that tells a training how fast its machine is

Then = Callable[[], None]
_OVER = Failure("INVALID_USAGE", "The termination time of the instance is in the past.")


def provision(world: World, machine: Machine, finish: Finish, *, new: bool = True) -> None:
    """A place on a host, or a failure; then it boots. One that is new goes with the failure."""
    if world.machines.get(machine.key) is not machine or machine.status not in (PROVISIONING, REPAIRING):
        finish(GONE)
        return
    failure = world.stock.refuse(machine.need, world.taken(but=machine))
    if failure is None and is_over(world, machine.ends):
        failure = _OVER
    if failure is None:
        machine.body["status"], machine.starting = STAGING, finish
        world.meter.begin(_usage(machine))
        machine.timers.append(world.agenda.after(world.pace.boot, lambda: boot(world, machine)))
        return
    if new:
        discard(world, machine)
    else:
        machine.body["status"] = TERMINATED
    finish(failure)


def boot(world: World, machine: Machine) -> None:
    machine.body |= {"status": RUNNING, "lastStartTimestamp": stamp()}
    machine.cause = None
    machine.board.tell(preempted=False, maintenance="NONE")
    _limit(world, machine)
    _switch_on(world, machine)
    tell_started(machine, None)


def reset(world: World, machine: Machine) -> None:
    """The power is cut and comes back; of one that is on."""
    if machine.status == RUNNING:
        cut_power(machine)
        _switch_on(world, machine)


def halt(world: World, machine: Machine, cause: Cause, grace: float, then: Then) -> None:
    """Soft-off: the shutdown script, SIGTERM, and after `grace` the power is cut. `then` when it is off."""
    if machine.status == TERMINATED:
        then()
        return
    machine.when_off.append(then)
    if machine.status == STOPPING:
        return
    machine.cause = cause
    machine.cancel_timers()
    machine.body["status"] = STOPPING
    if machine.guest is None:
        off(world, machine)
        return
    script = boards.attributes(machine.body).get(SHUTDOWN)
    if script:
        machine.guest.run(SHUTDOWN, script)
        machine.guest.ask_to_end(STARTUP)
    else:
        machine.guest.end_all()
    machine.timers.append(world.agenda.after(grace, lambda: off(world, machine)))


def cut(world: World, machine: Machine, cause: Cause, then: Then) -> None:
    """The power goes without a word."""
    machine.when_off.append(then)
    machine.cause = cause
    off(world, machine)


def off(world: World, machine: Machine) -> None:
    machine.cancel_timers()
    cut_power(machine)
    tell_started(machine, GONE)
    world.meter.end("machine", *machine.key)
    machine.body |= {"status": TERMINATED, "lastStopTimestamp": stamp()}
    waiting, machine.when_off = machine.when_off, []
    for then in waiting:
        then()


def preempt(world: World, machine: Machine, *, notice: bool) -> None:
    """Taken away: told and given its soft-off, or neither. Nothing happens to one that is not on."""
    if machine.status not in ON:
        return
    world.diary.note(diary.TAKEN, machine.name, notice=notice)

    def then() -> None:
        _end(world, machine, Cause.PREEMPTED)

    if not notice:
        cut(world, machine, Cause.PREEMPTED, then)
        return
    machine.board.tell(preempted=True)
    asked = machine.body["scheduling"].get("preemptionNoticeDuration", {})
    delay = float(asked.get("seconds", world.pace.notice))
    grace = world.pace.soft_off
    machine.timers.append(
        world.agenda.after(delay, lambda: halt(world, machine, Cause.PREEMPTED, grace, then))
    )


def host_error(world: World, machine: Machine) -> None:
    """Its host is broken: off at once, and on again if it may restart by itself."""
    if machine.status not in ON:
        return
    world.diary.note(diary.TAKEN, machine.name)

    def then() -> None:
        note(world, machine, Cause.HOST_ERROR)
        if machine.body["scheduling"].get("automaticRestart") and world.machines.get(machine.key) is machine:
            machine.body["status"] = REPAIRING
            world.agenda.after(
                world.pace.provision, lambda: provision(world, machine, lambda _: None, new=False)
            )

    cut(world, machine, Cause.HOST_ERROR, then)


def note(world: World, machine: Machine, cause: Cause) -> None:
    """The platform's own entry among the operations."""
    world.operations.note(machine.scope, cause.value, machine.path, machine.body["id"])


def _end(world: World, machine: Machine, cause: Cause) -> None:
    """Carries out the termination action of a machine that the platform switched off."""
    note(world, machine, cause)
    if machine.body["scheduling"].get("instanceTerminationAction") != "DELETE":
        return
    if world.machines.get(machine.key) is machine:
        discard(world, machine)
    if cause is Cause.DEADLINE and world.at_deadline is AtDeadline.LOWERS:
        for group in world.groups.values():
            member = group.member(*machine.key)
            if member is not None:
                group.members.remove(member)
                group.target -= 1


def is_over(world: World, ends: float | None) -> bool:
    """Whether the platform starts nothing any more that is to end then."""
    past = ends is not None and ends <= world.clock.now()
    return past and world.at_deadline is not AtDeadline.RECREATES


def _limit(world: World, machine: Machine) -> None:
    """Set the platform's own timer."""
    span = machine.body["scheduling"].get("maxRunDuration")
    ends = world.clock.now() + float(span["seconds"]) if span else machine.ends
    if ends is None:
        return
    soonest = world.clock.now() + world.pace.ended_again
    at = max(ends + world.pace.late, soonest) if ends < world.clock.now() else ends + world.pace.late
    machine.timers.append(world.agenda.at(at, lambda: _time_is_up(world, machine)))
    comes = stamp(time.time() + world.clock.real(at - world.clock.now()))
    machine.body["resourceStatus"] = {"scheduling": {"terminationTimestamp": comes}}


def _time_is_up(world: World, machine: Machine) -> None:
    halt(world, machine, Cause.DEADLINE, world.pace.soft_off, lambda: _end(world, machine, Cause.DEADLINE))


def _switch_on(world: World, machine: Machine) -> None:
    machine.boots += 1
    boots, folder = machine.boots, folder_of(world, machine)
    if not folder.exists():
        contents.furnish(world, machine)
    folder.mkdir(parents=True, exist_ok=True)

    def view() -> dict[str, Any]:
        return boards.tree(world.project, machine.body, machine.board)

    def hear(report: Mapping[str, Any]) -> None:
        with world.lock:
            if machine.boots == boots and machine.guest is not None:
                _hear(world, machine, machine.guest, report)

    machine.server = MetadataServer(view, machine.board, world.tokens.issue)
    host = machine.server.host
    place = {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "GCE_METADATA_ROOT": host}
    called = {env.HOST: machine.name}  # as a real one would be
    called[SPEED] = f"{world.speeds.get(machine.need.machine.name, 1.0):g}"
    machine.guest = Guest(folder, {**called, **world.guest_env, **place}, hear)
    if world.sshd:
        machine.guest.serve_ssh(machine.addresses)
    script = boards.attributes(machine.body).get(STARTUP)
    if script:
        machine.guest.run(STARTUP, script)


def _hear(world: World, machine: Machine, guest: Guest, report: Mapping[str, Any]) -> None:
    """Handles a report of the guest. The end of its guardian means that the machine crashed."""
    if "ended" in report:
        guest.say(f"{report['ended']} exit status {report['code']}")
        if report["ended"] == SHUTDOWN and machine.status == STOPPING:
            guest.end_all()
    elif "empty" in report or "gone" in report:
        if machine.status == STOPPING:
            off(world, machine)
        elif "gone" in report:
            host_error(world, machine)
    elif "off" in report:
        halt(world, machine, Cause.GUEST, world.pace.shutdown, lambda: note(world, machine, Cause.GUEST))


def _usage(machine: Machine) -> Usage:
    labels = tuple(sorted(machine.body.get("labels", {}).items()))
    need = machine.need
    return Usage(
        "machine", machine.name, machine.zone, need.machine.name, need.spot, need.accelerators, 0, labels, 0
    )
