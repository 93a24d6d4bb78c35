from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hostler.records import layout, packing, sweeps
from hostler.spec.job import Notify
from hostler.worker import closer, notifier
from hostler.worker.closer import Closer
from worker_world import World

FINE = 'import json\nprint(json.dumps({"step": 1, "loss": 0.5}))\n'


class Inbox:
    """A server that keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.status = 200
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                inbox.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(inbox.status)
                self.end_headers()

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
    Closer(world.store, world.said.append).look([job.name])
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


def test_runs_that_all_failed_are_a_failure_and_only_what_is_asked_for_is_told(
    world: World, inbox: Inbox, hook: str
) -> None:
    world.submit("raise SystemExit(3)", name="bad", retries=0, notify=Notify((hook,), on=("failed",)))
    world.submit(FINE, name="good", notify=Notify((hook,), on=("failed",)))
    world.work()
    assert ["bad has finished: 1 failed" in body["text"] for body in inbox.bodies] == [True]


def test_a_sweep_halted_for_its_errors_or_its_hours_is_told(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, runs=[{"i": n} for n in range(3)], notify=Notify((hook,)))
    look = Closer(world.store, world.said.append).look
    sweeps.halt(world.store, job.name, "the same error 5 times in a row: no")
    look([job.name])
    look([job.name])
    sweeps.lift(world.store, job.name)
    sweeps.halt(world.store, job.name, "its 2 hours are over", kind="hours")
    look([job.name])
    assert [body["text"].splitlines()[1] for body in inbox.bodies] == [
        "job is halted: the same error 5 times in a row: no",
        "job is halted: its 2 hours are over",
    ]


def test_a_cap_of_money_is_told_once(world: World, inbox: Inbox, hook: str) -> None:
    job = world.submit(FINE, notify=Notify((hook,)))
    for _ in range(2):
        Closer(world.store, world.said.append).look([job.name], capped=True)
    assert len(inbox.bodies) == 1 and "the money cap is reached" in inbox.bodies[0]["text"]


def test_a_worker_without_the_address_leaves_the_event_to_another(
    world: World, inbox: Inbox, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.submit(FINE, notify=Notify(("NOWHERE",)))
    world.work()
    assert any("NOWHERE is not set here" in line for line in world.said)
    monkeypatch.setenv("NOWHERE", f"http://127.0.0.1:{inbox.port}/")
    Closer(world.store, world.said.append).look([job.name])
    assert len(inbox.bodies) == 1


def test_apprise_sends_it_where_it_is_installed(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    monkeypatch.setenv("HOOK", f"json://127.0.0.1:{inbox.port}/")
    said: list[str] = []
    notifier.send(["HOOK", "UNSET"], "hostler", ["one", "two"], said.append)
    assert said == [] and inbox.bodies[0]["message"] == "one\ntwo"
    monkeypatch.setenv("HOOK", "nonsense")
    notifier.send(["HOOK"], "hostler", ["one"], said.append)
    assert said == ["the message to $HOOK was not sent: that is no address of Apprise's"]


def test_who_finds_a_sweep_over_packs_what_others_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closer, "FEW", 6)
    job = world.submit(FINE, runs=[{"i": n} for n in range(8)])
    for _ in range(4):
        world.work(runs=2)
    assert (
        len(packing.covered(packing.read(world.store, job.name), packing.heads(world.store, job.name)).rows)
        == 8
    )
    assert len(list(world.store.list(layout.segments(job.name)))) == 1


def test_a_sweep_that_goes_on_is_not_over(world: World, inbox: Inbox, hook: str) -> None:
    world.submit(FINE, runs=[{"i": n} for n in range(3)], notify=Notify((hook,)))
    world.work(runs=1)
    assert inbox.bodies == []
