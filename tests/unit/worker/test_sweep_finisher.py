from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.records import layout
from hostler.records.rows import rows
from hostler.records.run import log as run_log
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import packing
from hostler.records.series.metrics import MetricWriter
from hostler.records.sweep import sweeps
from hostler.spec.job import Notify
from hostler.store import Store
from hostler.worker import sweep_finisher
from hostler.worker.machine import Machine
from hostler.worker.sweep_finisher import OwnSweeps, SweepFinisher
from worker_world import World

FINE = 'import json\nprint(json.dumps({"step": 1, "loss": 0.5}))\n'


class Inbox:
    """A server that keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.status = 200
        self.heard: Callable[[], object] = lambda: None
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                inbox.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(inbox.status)
                self.end_headers()
                inbox.heard()

            def log_message(self, *given: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.server.shutdown()
    inbox.server.server_close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def hook(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "apprise", None)  # as where it is not installed
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{inbox.port}/secret-part")
    return "HOOK"


def test_a_finished_sweep_is_told_once_however_many_leave(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, runs=[{"i": n} for n in range(3)], notify=Notify((hook,)), metric="loss")
    world.work()
    world.work()
    SweepFinisher(world.store, world.said.append).look([job.name])
    (body,) = inbox.bodies
    assert "job has finished: 3 done; best job/0 loss=0.5" in body["text"]
    assert [e.key for e in world.store.list(layout.NOTICES)] == [layout.notice(1)]


def test_the_address_is_in_no_spec_and_no_log(world: World, inbox: Inbox, hook: str) -> None:
    inbox.status = 500
    world.submit(FINE, notify=Notify((hook,)))
    world.work()
    assert len(inbox.bodies) == 1
    assert any("the message to $HOOK was not sent: the server answered 500" in line for line in world.said)
    stored = b"".join(world.store.get(entry.key).data for entry in world.store.list(""))
    assert b"secret-part" not in stored and "secret-part" not in "".join(world.said)


def test_all_runs_failed_is_a_failure_and_told_if_asked(world: World, inbox: Inbox, hook: str) -> None:
    world.submit("raise SystemExit(3)", name="bad", retries=0, notify=Notify((hook,), on=("failed",)))
    world.submit(FINE, name="good", notify=Notify((hook,), on=("failed",)))
    world.work()
    assert ["bad has finished: 1 failed" in body["text"] for body in inbox.bodies] == [True]


def test_sweep_halted_for_errors_or_hours_is_told(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, runs=[{"i": n} for n in range(3)], notify=Notify((hook,)))
    look = SweepFinisher(world.store, world.said.append).look
    sweeps.halt(world.store, job.name, "the same error 5 times in a row: no")
    look([job.name])
    look([job.name])
    sweeps.lift(world.store, job.name)
    sweeps.halt(world.store, job.name, "its budget of 2h is used up", kind="hours")
    look([job.name])
    assert [body["text"].splitlines()[1] for body in inbox.bodies] == [
        "job is halted: the same error 5 times in a row: no",
        "job is halted: its budget of 2h is used up",
    ]


def test_a_cap_of_money_is_told_once(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, notify=Notify((hook,)))
    for _ in range(2):
        SweepFinisher(world.store, world.said.append).look([job.name], capped=True)
    assert len(inbox.bodies) == 1 and "the money cap is reached" in inbox.bodies[0]["text"]


def at(hour: int, day: int = 1) -> float:
    """That hour by the clock of this machine."""
    return time.mktime((2027, 3, day, hour, 0, 0, 0, 0, -1))


def texts(inbox: Inbox) -> list[list[str]]:
    return [body["text"].splitlines()[1:] for body in inbox.bodies]


def test_notices_held_in_quiet_hours_are_told_once_after_them(world: World, inbox: Inbox, hook: str) -> None:
    notify = Notify((hook,), quiet="22:00-07:00")
    names = [world.submit(FINE, name=name, notify=notify).name for name in ("one", "two")]
    for name in names:
        sweeps.halt(world.store, name, f"no luck with {name}")
        SweepFinisher(world.store, world.said.append, lambda: at(23)).look([name])
    SweepFinisher(world.store, world.said.append, lambda: at(6, 2)).look(names)
    assert inbox.bodies == []
    leaving = [
        threading.Thread(
            target=SweepFinisher(world.store, world.said.append, lambda: at(8, 2)).look, args=([name],)
        )
        for name in names * 4
    ]
    for thread in leaving:
        thread.start()
    for thread in leaving:
        thread.join()
    assert texts(inbox) == [["one is halted: no luck with one", "two is halted: no luck with two"]]


def test_notices_over_the_limit_are_told_once_an_hour_later(world: World, inbox: Inbox, hook: str) -> None:
    notify = Notify((hook,), limit=1)
    now = at(12)
    for n in range(3):
        world.submit(FINE, name=f"s{n}", notify=notify)
        sweeps.halt(world.store, f"s{n}", "x")
        SweepFinisher(world.store, world.said.append, lambda n=n: now + n).look([f"s{n}"])  # type: ignore[misc]
    assert texts(inbox) == [["s0 is halted: x"]]
    for later in (3599.0, 3601.0, 3602.0):
        SweepFinisher(world.store, world.said.append, lambda later=later: now + later).look(["s0"])  # type: ignore[misc]
    assert texts(inbox)[1:] == [["s1 is halted: x", "s2 is halted: x"]]


def test_what_no_service_took_is_told_with_the_next(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, notify=Notify((hook,)))
    sweeps.halt(world.store, job.name, "x")
    inbox.status = 500
    SweepFinisher(world.store, world.said.append).look([job.name])
    inbox.status = 200
    for _ in range(2):
        SweepFinisher(world.store, world.said.append).look([job.name])
    assert texts(inbox) == [["job is halted: x"]] * 2  # refused once, taken once


def test_people_hear_of_a_sweep_while_its_worker_does_another(
    world: World, inbox: Inbox, hook: str, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    waits = (
        "import pathlib, sys, time\n"
        f"told = pathlib.Path({str(told)!r})\n"
        "for _ in range(1200):\n    time.sleep(0.05)\n    if told.exists(): sys.exit(0)\n"
        "sys.exit(3)\n"
    )
    inbox.heard = lambda: told.write_text("")
    world.submit(FINE, name="a", notify=Notify((hook,)))
    job = world.submit(waits, name="b", notify=Notify((hook,)), retries=0)
    world.work()
    assert [row.state for row in rows(world.store, [job.name])] == ["done"]
    assert [lines[0].split(":")[0] for lines in texts(inbox)] == ["a has finished", "b has finished"]


def test_a_worker_without_the_address_leaves_the_event_to_another(
    world: World, inbox: Inbox, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.submit(FINE, notify=Notify(("NOWHERE",)))
    world.work()
    assert any("NOWHERE is not set here" in line for line in world.said)
    monkeypatch.setenv("NOWHERE", f"http://127.0.0.1:{inbox.port}/")
    SweepFinisher(world.store, world.said.append).look([job.name])
    assert len(inbox.bodies) == 1


def test_apprise_sends_it_where_it_is_installed(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.library("apprise")
    monkeypatch.setenv("HOOK", f"json://127.0.0.1:{inbox.port}/")
    said: list[str] = []
    sweep_finisher.send(["HOOK", "UNSET"], "hostler", ["one", "two"], said.append)
    assert said == [] and inbox.bodies[0]["message"] == "one\ntwo"
    monkeypatch.setenv("HOOK", "nonsense")
    sweep_finisher.send(["HOOK"], "hostler", ["one"], said.append)
    assert said == ["the message to $HOOK was not sent: Apprise does not understand its address"]


def test_who_finds_a_sweep_over_packs_what_others_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_finisher, "FEW", 6)
    job = world.submit(FINE, runs=[{"i": n} for n in range(8)])
    for _ in range(4):
        world.work(runs=2)
    assert (
        len(packing.covered(packing.read(world.store, job.name), run_log.heads(world.store, job.name)).rows)
        == 8
    )
    assert len(list(world.store.list(layout.segments(job.name)))) == 1


def test_a_sweep_that_goes_on_is_not_over(world: World, inbox: Inbox, hook: str) -> None:
    world.submit(FINE, runs=[{"i": n} for n in range(3)], notify=Notify((hook,)))
    world.work(runs=1)
    assert inbox.bodies == []


def test_runs_that_another_has_in_memory_are_waited_for(world: World) -> None:
    job = world.submit(FINE, runs=[{"n": n} for n in range(12)])
    world.work(runs=12)
    held = [segment for _, segment in packing.each(world.store, job.name)]
    number, waits, reads = layout.segment(job.name, 1), list[int](), list[str]()
    data = world.store.get(number).data
    world.store.delete(number, layout.over(job.name, 24))

    def wait() -> bool:
        waits.append(1)
        if len(waits) == 2:
            world.store.put(number, data)
        return len(waits) < 2  # it has written, and left

    finisher = SweepFinisher(Reads(world.store, reads), world.said.append, wait=wait)
    finisher.look([job.name])
    assert len(held) == 1 and len(waits) == 2
    names = f"list {layout.logs_of(job.name)}"
    assert not [key for key in reads if "/log/" in key.replace(names, "") or layout.RUNS in key]
    assert [entry.key for entry in world.store.list(layout.segments(job.name))] == [number]


def test_worker_that_saw_the_end_asks_for_no_names_again(world: World) -> None:
    job = world.submit(FINE, runs=[{"n": n} for n in range(12)])
    world.work(runs=12)
    reads: list[str] = []
    finisher = SweepFinisher(Reads(world.store, reads), world.said.append, over=lambda name: (job, 24))
    finisher.look([job.name])  # another has found it over before
    assert reads == []
    assert [entry.key for entry in world.store.list(f"sweeps/{job.name}/over/")] == [
        layout.over(job.name, 24)
    ]


class Reads:
    """A store that notes what is listed and read."""

    def __init__(self, inner: Store, noted: list[str]) -> None:
        self._inner, self._noted, self.url = inner, noted, inner.url

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, key: str, **part: Any) -> Any:
        self._noted.append(key)
        return self._inner.get(key, **part)

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Any:
        self._noted.append(f"list {prefix}")
        return self._inner.list(prefix, after, deep=deep)


def test_sweep_that_is_still_open_is_not_asked_about(world: World) -> None:
    job = world.submit(FINE, runs=[{"n": n} for n in range(12)])
    reads: list[str] = []
    machine = Machine(Reads(world.store, reads), world.cache, "me", world.timing, clock=lambda: 0.0)
    own = OwnSweeps(machine)
    own.had(job.name)
    own.look((), {job.name})
    own.finish(capped=False, seen=Saw({job.name}))
    assert reads == []
    own.finish(capped=False, seen=Saw(set()))
    assert reads != []


class Saw:
    """A last look."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def open_sweeps(self) -> set[str]:
        return self._names

    def over(self, sweep: str) -> None:
        return None


def test_idle_worker_writes_what_it_holds_before_others_read_it(world: World) -> None:
    job = world.submit(FINE, runs=[{"n": n} for n in range(12)])
    machine = Machine(world.store, world.cache, "me", world.timing, clock=lambda: 0.0)
    for n in range(12):
        entries = RunLog(world.store, RunKey(job.name, job.run_id(n)))
        taken = claim(world.store, entries, 60.0, lambda: 0.0, Claim("me"))
        assert taken is not None
        taken.end("done")
        written = MetricWriter(world.store, taken.key.run, 1)
        machine.compactor.take(world.store, taken, {"n": n}, written)
    own = OwnSweeps(machine)
    own.had(job.name)
    own.look((), {job.name})
    assert own._thread is not None
    own._thread.join()
    assert [len(segment.runs) for _, segment in packing.each(world.store, job.name)] == [12]
