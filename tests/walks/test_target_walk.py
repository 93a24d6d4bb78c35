"""A sweep that is to be done by a moment, on emulated machines: the one that closes a run asks for more."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cli_world import World
from gce_world import TRAIN, cloud, eventually, weights
from hostler.emulators.gce import Pace

PACE = Pace(operation=0.2, provision=0.2, boot=0.05, soft_off=6, shutdown=8, look=0.3, retry=1)
RUNS, STEPS, BY = 12, 30, 340.0  # one worker takes 360 s


def test_answer_to_the_price_of_a_target_decides(tmp_path: Path) -> None:
    """No leaves nothing behind; yes starts. The price stands before the question."""
    world = World(tmp_path)
    world.write("train.py", "print('trained')\n")
    fleets = {
        name: {"backend": "local", "workers": 2, "slots": 1, "price": price}
        for name, price in (("slow", 7.0), ("fast", 9.0))
    }
    world.write("hostler.yaml", json.dumps({"name": "p", "command": "python train.py", "fleets": fleets}))
    world.write("grid.yaml", json.dumps({"name": "grid", "parameters": {"lr": [1, 2]}}))
    words = ("sweep", "grid.yaml", "--on", "slow,fast", "--by", "10m", "--run-time", "1s")
    try:
        refused = world.answered(*words, given="n\n")
        price, question = refused.err.index("at 7.00 an hour"), refused.err.index("Submit? [y/N]")
        assert price < refused.err.index("of slow: done by") < question, refused.err
        assert refused.code == 1 and refused.err.endswith("nothing was submitted\n")
        assert not world.store.exists() and not world.processes(holding="hostler.worker")
        agreed = world.answered(*words, given="y\n")
        assert agreed.code == 0 and "Submit? [y/N]" in agreed.err, agreed.err
        assert world.run("wait", "grid", timeout=60).code == 0
        assert {row["state"] for row in world.run("status", "grid", "--json").json} == {"done"}
    finally:
        world.close()


@pytest.mark.timeout(600)
def test_sweep_is_done_by_its_moment_on_the_cheaper_fleet(tmp_path: Path) -> None:
    """The small dose of what follows, and of the random worlds: a moment that leaves room."""
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        common = {"backend": "gce", "project": world.gce.project, "zones": ["us-central1-a"], "workers": 3}
        fleets = {
            name: {**common, "machine": machine, "price": price}
            for name, machine, price in (("burst", "e2-standard-4", 6.0), ("tau", "n2-standard-4", 9.0))
        }
        project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}}
        world.write("hostler.yaml", json.dumps({**project, "fleets": fleets}))
        world.env |= {"HOSTLER_CAP_MARGIN": "20", "HOSTLER_REPORT": "240", "HOSTLER_LEASE": "10"}
        world.sweep_file(4, steps=20, nap=0.5)
        due = time.monotonic() + 300
        wish = ("--by", "300s", "--under", "3", "--run-time", "10s", "--preempt", "50%/10m")
        told = world.run("sweep", "-y", "grid.yaml", "--on", "burst,tau", *wish, timeout=120)
        assert told.code == 0 and " of burst" in told.err and "done by" in told.err, told.err
        eventually(lambda: world.states().get("running", 0) > 0, 200)
        world.gce.preempt(world.gce.names()[0], notice=False)
        eventually(lambda: world.states() == {"done": 4}, due - time.monotonic())
        world.until_gone(120)
        assert world.weights(4) == {n: weights(n, 20) for n in range(4)}
        assert {one.type for one in world.gce.usage() if one.kind == "machine"} == {"e2-standard-4"}
        assert len(world.gce.trace().losses) == 1 and world.gce.bill(lambda usage: 6.0).total <= 3


def test_machine_without_a_run_leaves_while_the_last_one_goes_on(tmp_path: Path) -> None:
    """Three runs on two machines: one of these has nothing to do at the end, and costs nothing then."""
    with cloud(tmp_path, scale=60) as world:
        world.project(workers=3, more="price: 6")
        last = "given = parser.parse_args()\ngiven.hold = given.hold if given.lr == '2' else ''"
        world.write("train.py", TRAIN.replace("given = parser.parse_args()", last))
        world.sweep_file(3, hold=world.hold())
        wish = ("--by", "420s", "--run-time", "100s", "--preempt", "0")
        told = world.run("sweep", "-y", "grid.yaml", "--on", "burst", *wish, timeout=120)
        assert told.code == 0 and "2 workers of burst" in told.err, told.err
        eventually(lambda: world.states() == {"done": 2, "running": 1}, 120)
        eventually(lambda: len(world.gce.machines()) == 1, 60)
        assert world.states() == {"done": 2, "running": 1}
        world.let_go()
        world.until_gone()
        assert world.states() == {"done": 3} and world.weights(3) == {n: weights(n) for n in range(3)}
        assert sum(one.kind == "machine" for one in world.gce.usage()) == 2  # none came in its place


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_late_sweep_is_in_time_within_its_money_though_preempted(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        fleet = {"backend": "gce", "project": world.gce.project, "zones": ["us-central1-a"], "price": 6.0}
        project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}}
        world.write("hostler.yaml", json.dumps({**project, "fleets": {"burst": {**fleet, "workers": 4}}}))
        world.env |= {"HOSTLER_CAP_MARGIN": "20", "HOSTLER_REPORT": "240"}  # a busy machine boots slowly
        world.sweep_file(RUNS, steps=STEPS, nap=1.0)  # a run takes ten times as long as is said
        wish = ("--by", f"{BY:g}s", "--under", "3", "--run-time", "3s")
        due = time.monotonic() + BY
        told = world.run("sweep", "-y", "grid.yaml", "--on", "burst", *wish, timeout=120)
        assert told.code == 0 and "1 worker of burst, up to 2 if it is late" in told.err, told.err
        eventually(lambda: len(world.gce.names()) == 2, 200)
        world.gce.preempt(world.gce.names()[0], notice=False)
        eventually(lambda: world.states() == {"done": RUNS}, due - time.monotonic())
        world.until_gone(120)
        assert world.states() == {"done": RUNS}
        assert world.weights(RUNS) == {n: weights(n, STEPS) for n in range(RUNS)}
        lives = [(one.began, one.began + one.seconds) for one in world.gce.usage() if one.kind == "machine"]
        assert len(lives) >= 3  # one came later, one in the place of another
        assert max(sum(began <= at < ended for began, ended in lives) for at, _ in lives) == 2  # the cap
        assert world.gce.bill(lambda usage: 6.0).total <= 3
