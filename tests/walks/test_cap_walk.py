"""Walk 6: the money cap is reached, all machines go, nothing is lost, a later `hostler resume` finishes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import World, eventually
from hostler.records.checkpoint import checkpoints
from hostler.records.launch import launches, ledger
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series import metrics
from hostler.records.sweep import sweeps
from hostler.store import open_store

TRAIN = """
import json, os, signal, sys, time
from pathlib import Path

signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
folder = Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
path = folder / "step"
step = int(path.read_text()) if path.exists() else 0
while step < 3 or not Path(os.environ["MAY_END"]).exists():
    step += 1
    time.sleep(0.1)
    fresh = folder / "fresh"
    fresh.write_text(str(step))
    fresh.rename(path)
    print(json.dumps({"step": step, "value": step * 2}), flush=True)
"""
PRICE = 900  # a quarter of a unit a second
FLEETS = f"""
fleets:
  a: {{backend: local, workers: 2, slots: 1, price: {PRICE}}}
  b: {{backend: local, workers: 1, slots: 1, price: {PRICE}, max_cost: 4}}
  c: {{backend: local, workers: 1, slots: 1, price: {PRICE}, max_cost: 4}}
  d: {{backend: local, workers: 1, slots: 1, price: {PRICE}, max_cost: 4}}
  unknown: {{backend: local, workers: 1, max_cost: 5}}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.env |= {"HOSTLER_CAP_MARGIN": "1", "HOSTLER_GRACE": "2", "HOSTLER_ACCOUNT": "0.5"}
    world.env["MAY_END"] = str(tmp_path / "may end")
    world.write("train.py", TRAIN)
    world.write("hostler.yaml", FLEETS)
    write(world, 8)
    yield world
    world.close()


def write(world: World, cost: float) -> None:
    file = {
        "name": "s",
        "command": "python train.py",
        "budget": {"cost": cost},
        "parameters": {"i": [1, 2, 3, 4]},
    }
    world.write("s.json", json.dumps(file))


def steps(world: World, key: RunKey) -> list[int]:
    """The steps on the chain of attempts that counts, as a reader sees them."""
    store = open_store(str(world.store))
    points = metrics.read(store, key.run, control.state_of(store, key).attempt)
    return [point.step for point in points if "value" in point.values]


def keys(world: World) -> list[RunKey]:
    job = sweeps.load(open_store(str(world.store)), "s")
    return [RunKey("s", job.run_id(index)) for index in range(job.count)]


def workers(world: World) -> list[int]:
    return world.processes(holding="hostler.worker")


class Meter:
    """What the workers of a world cost, seen from outside: how long the processes live that keep one."""

    def __init__(self, world: World) -> None:
        self._world, self._done, self.cost = world, threading.Event(), 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._done.wait(0.1):
            parents = [pid for pid in workers(self._world) if b"--session" not in words(pid)]
            now = time.monotonic()
            self.cost += len(parents) * (now - last) * PRICE / 3600
            last = now

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self.cost


def words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"--session"


def test_reached_cap_loses_nothing_and_more_money_finishes(world: World) -> None:
    meter = Meter(world)
    begun = world.run("sweep", "-y", "--on", "a", "s.json")
    assert begun.code == 0, begun.err
    assert "2 workers at 900.00 an hour, 1800.00 in all" in begun.err
    assert "gone after 15s at the latest, which takes 8.00 of s's budget" in begun.err
    store = open_store(str(world.store))
    eventually(lambda: len(launches.stays(store, "a", 1)) == 2)
    assert "of 8.00 spent" in world.run("status", "s").out
    eventually(lambda: not workers(world), 60)
    assert meter.stop() <= 8

    states = {key: control.state_of(store, key) for key in keys(world)}
    paused = [key for key, state in states.items() if state.state == "paused"]
    assert len(paused) == 2 and all(states[key].paused_by == "cap" for key in paused)
    reached = {key: steps(world, key) for key in paused}
    assert all(checkpoints.committed(store, key.run) for key in paused), "what ran is saved"
    said = world.run("status", "s")
    assert "paused: budget" in said.out and "hostler resume --on" in said.err
    waited = world.run("wait", "s")
    assert waited.code == 1 and "hostler resume continues them" in waited.err
    told = world.run("cost", "--json").json
    assert told["sweeps"][0]["spent"] <= 8 and told["sweeps"][0]["reserved"] == 0
    assert told["fleets"][0]["over"] and told["fleets"][0]["idle"] >= 0

    write(world, 100)
    Path(world.env["MAY_END"]).touch()
    assert world.run("sweep", "-y", "--no-start", "s.json").code == 0
    unasked = world.run("resume", "s", "--on", "a")
    assert unasked.code == 2 and "Start?" in unasked.err and "-y answers yes" in unasked.err
    assert {control.state_of(store, key).state for key in paused} == {"paused"}, "and nothing was queued"
    assert world.run("resume", "-y", "s", "--on", "a").code == 0
    assert world.run("wait", "s", timeout=120).code == 0
    for key in keys(world):
        assert control.state_of(store, key).state == "done"
        done = steps(world, key)
        assert done == list(range(1, len(done) + 1)), "every step once, in one chain"
        assert len(done) >= len(reached.get(key, ())), "nothing that was reached is lost"
    eventually(lambda: not workers(world), 60)
    account = ledger.read(store, "s")
    assert not account.open and account.committed <= 100
    total = sum(one["cost"] for one in world.run("cost", "s", "--json").json["runs"])
    assert 0 < total <= account.committed


def test_concurrent_fleets_on_one_sweep_never_exceed_its_budget(world: World) -> None:
    assert world.run("sweep", "-y", "--no-start", "s.json").code == 0
    meter = Meter(world)
    started = [world.start("up", "-y", name) for name in "bcd"]
    said = [(one.communicate(timeout=60)[1], one.returncode) for one in started]
    [refused] = [err for err, code in said if code == 2]
    assert sorted(code for _, code in said) == [0, 0, 2]
    assert "the budget of s is used up: 0 of 8 left (reserved: 4 by" in refused
    assert "allow more" in refused and "hostler cost s" in refused
    store = open_store(str(world.store))
    eventually(lambda: not workers(world), 60)
    assert meter.stop() <= 8
    assert ledger.read(store, "s").committed <= 8
    spent = sum(stay.seconds for name in "bcd" for stay in launches.stays(store, name, 1)) * PRICE / 3600
    assert 0 < spent <= 8


def test_the_money_of_workers_that_were_killed_comes_back(world: World) -> None:
    assert world.run("sweep", "-y", "--on", "a", "s.json").code == 0
    store = open_store(str(world.store))
    eventually(lambda: len(launches.stays(store, "a", 1)) == 2)
    world.kill_workers()
    time.sleep(4)
    assert world.run("sweep", "-y", "--on", "a", "s.json").code == 0
    account = ledger.read(store, "s")
    assert account.reservations[0].returned is not None and account.reservations[0].returned > 1
    assert len(account.open) == 1 and account.committed <= 8


def test_only_commands_that_cost_money_ask_first(world: World) -> None:
    refused = world.run("run", "--on", "a", "train.py")
    assert refused.code == 2 and "cannot ask" in refused.err and "2 workers at 900.00" in refused.err
    assert not (world.store / "sweeps").exists()
    shown = world.run("run", "--on", "a", "--dry-run", "train.py")
    assert "1800.00 in all" in shown.out and "--fleet a/1" in shown.out
    assert world.run("sweep", "-y", "--no-start", "s.json").code == 0
    asked = world.run("up", "a")
    assert asked.code == 2 and "cannot ask" in asked.err
    assert not workers(world)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "-y", "--on", "unknown", "train.py"), "`max_cost` of fleet unknown cannot be enforced"),
        (("sweep", "-y", "--on", "unknown", "s.json"), "the price of unknown is not known"),
    ],
)
def test_cap_without_a_price_is_refused_before_anything_is_submitted(
    world: World, words: tuple[str, ...], said: str
) -> None:
    answer = world.run(*words)
    assert answer.code == 2 and said in answer.err and "`price:`" in answer.err
    assert not (world.store / "sweeps").exists()


def test_a_budget_for_less_than_the_margin_is_refused(world: World) -> None:
    asked = world.run("sweep", "--on", "a", "s.json")
    assert asked.code == 2 and "cannot ask" in asked.err
    write(world, 0.25)
    answer = world.run("sweep", "-y", "--on", "a", "s.json")
    assert answer.code == 2
    assert not world.store.exists(), "nothing is written before somebody agrees"
    assert (
        "what is left of the budget of s, 0.25, is less than 1.2s of a, which costs 1800 an hour"
        in answer.err
    )
    plan = world.run("plan", "--on", "a", "s.json", "--json")
    assert plan.code == 0 and "less than" in plan.json["price"]["refused"]


def test_unpriced_machine_reports_that_its_budget_is_not_kept(world: World) -> None:
    said = world.run("plan", "s.json")
    assert said.code == 0 and "`budget: {cost}` is not enforced here" in said.out


def test_time_alone_caps_a_fleet_that_costs_nothing(world: World) -> None:
    world.write("hostler.yaml", "fleets: {a: {backend: local, workers: 1, slots: 1, max_hours: 0.004}}\n")
    world.write("s.json", json.dumps({"name": "s", "command": "python train.py", "parameters": {"i": [1]}}))
    begun = world.run("sweep", "-y", "--on", "a", "s.json")
    assert begun.code == 0, begun.err
    eventually(lambda: not workers(world), 60)
    state = control.state_of(open_store(str(world.store)), keys(world)[0])
    assert (state.state, state.paused_by) == ("paused", "cap")
