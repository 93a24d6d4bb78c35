"""Several VMs train one model: they meet inside their network, outlive a preemption, and leave nothing. A
history of it is judged by tests/history/checker.py."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))

from recorder import Recorder

from gang_world import GANG
from gce_world import CloudWorld, cloud, eventually

STEPS, HELD = 40, 10
HOLD = f"""    while rank == 0 and step == {HELD} and os.path.exists(sys.argv[-1]):
        time.sleep(0.1)
"""
TRAIN = (
    "import sys\n"
    + GANG.replace("steps(24)", f"steps({STEPS})")
    .replace('sleep(float(os.environ.get("NAP", "0.2")))\n', "sleep(0.1)\n" + HOLD)
    .replace('log({"loss":', 'log({f"loss{rank}":')  # a curve of each rank
)
BY_HAND = "import sys\nsys.modules['torch'] = None\n"  # as on an image with Python alone


def training(ranks: int) -> Iterator[list[float]]:
    """Weights after each step of an undisturbed training, summed in the order of the ranks."""
    weights = [0.0] * 8
    for step in range(STEPS):
        chances = [random.Random(f"{rank} {step}") for rank in range(ranks)]
        told = [[chance.gauss(0, 1) - w for w in weights] for chance in chances]
        weights = [w + 0.1 * sum(mine[k] for mine in told) for k, w in enumerate(weights)]
        yield weights


def trained(ranks: int) -> str:
    """What it ends with."""
    *_, weights = training(ranks)
    return hashlib.sha256(json.dumps(weights).encode()).hexdigest()


def violations(world: CloudWorld, history: Recorder, ranks: int) -> list[str]:
    """What the checker says of the run, and of what is left of its machines."""
    losses = [(step, sum(w * w for w in weights)) for step, weights in enumerate(training(ranks))]
    run = row_of(world)["id"]
    curves = {f"loss{rank}": losses for rank in range(ranks)}
    history.expect({run: {"state": "done", "curves": curves, "weights": {}, "judged": "^$"}})
    cache, tmp = Path(world.env["HOSTLER_CACHE"]), Path(world.env["TMPDIR"])
    return history.close([run], cache, tmp, machines=world.gce.left())


def gang_of(world: CloudWorld, nodes: int, vms: int, more: str = "", train: str = BY_HAND + TRAIN) -> None:
    """A project whose one run takes so many VMs of so many, and waits before its last steps."""
    world.project(vms, zones=["us-central1-a", "us-central1-b"], more=more)
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", f"resources: {{nodes: {nodes}}}\nretries: 1\n{text}")
    world.write("train.py", train)
    world.sweep_file(1, hold=world.hold())


def row_of(world: CloudWorld) -> dict[str, Any]:
    [row] = world.run("status", "grid", "--json").json
    return dict(row)


def told(world: CloudWorld) -> str:
    return world.run("logs", "grid", timeout=60).out


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("nodes", "vms", "struck", "notice", "train"),
    [
        (2, 3, "member", True, BY_HAND + TRAIN),
        pytest.param(2, 2, "leader", False, BY_HAND + TRAIN, marks=pytest.mark.soak),
        pytest.param(2, 4, "leader", True, TRAIN, marks=pytest.mark.soak),
        pytest.param(4, 4, "member", False, BY_HAND + TRAIN, marks=pytest.mark.soak),
    ],
)
def test_vm_preempted_mid_epoch_changes_no_bit_and_leaves_nothing(
    tmp_path: Path, nodes: int, vms: int, struck: str, notice: bool, train: str
) -> None:
    with cloud(tmp_path) as world:
        gang_of(world, nodes, vms, train=train)
        with Recorder("gs://runs/cifar", tmp_path / "evidence", "grid", world.env) as history:
            world.launched("grid.yaml", timeout=300)
            eventually(lambda: (row_of(world)["step"] or 0) >= HELD, 120)
            leader = row_of(world)["host"]
            members = [name for name in world.gce.names() if "joins as number" in world.gce.serial(name)]
            victim = leader if struck == "leader" else members[0]
            world.gce.preempt(victim, notice=notice)
            history.add("killed", kind="machine", machine=victim, how="notice" if notice else "cut")
            if notice:  # they leave together, at an iteration that is before the end
                asked = "asked to stop: it is pre"
                eventually(lambda: asked in told(world) or row_of(world)["attempt"] > 1, 60)
            world.let_go()
            world.until_gone(180)
        row, said = row_of(world), told(world)
        assert row["state"] == "done" and row["attempt"] >= 2, said
        ends = dict(json.loads(one) for one in re.findall(r"^weights (.*)$", said, re.M))
        assert ends == dict.fromkeys(range(nodes), trained(nodes)), said
        assert "goes on from checkpoint" in said
        [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
        alone = launch["price"] * row["seconds"] / 3600
        assert 0.5 * nodes * alone < row["cost"] < launch["cost"]  # of all VMs, each as long as it was there
        assert violations(world, history, nodes) == []


def failed(world: CloudWorld, kind: str) -> str:
    """The launch comes, its run fails so, nothing is left: why it did."""
    world.launched("grid.yaml")
    world.until_gone(180)
    row = row_of(world)
    assert row["state"] == "failed" and row["failure"]["kind"] == kind, (row, told(world))
    return f"{row['failure']['message']}; {row['failure']['advice']}"


def test_vms_behind_a_firewall_name_the_unreachable_and_remove_themselves(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path) as world:
        gang_of(world, 2, 2)
        emulated = world.gce._world
        emulated.guest_env = {**emulated.guest_env, "HOSTLER_ADDRESS": "240.0.0.1"}  # answers nobody
        said = failed(world, "unreached")
        assert "hostler-cifar-burst-1-" in said and "cannot reach 240.0.0.1 at port" in said
        assert "firewall" in said and "HOSTLER_PORTS" in said


@pytest.mark.soak
def test_rank_whose_vm_never_comes_is_named_within_a_bound(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path) as world:
        gang_of(world, 2, 2)
        world.env |= {"HOSTLER_GATHER": "3"}
        world.gce.places("us-central1-a", 1)
        world.gce.places("us-central1-b", 0)
        said = failed(world, "gang")
        assert "1 of 2 workers joined within" in said and "no other worker is alive" in said
        assert "start as many workers" in said


def test_fleet_with_too_few_vms_is_refused_with_network_advice(
    tmp_path: Path,
) -> None:
    with cloud(tmp_path) as world:
        gang_of(world, 3, 2)
        for words in (("plan", "grid.yaml", "--on", "burst"), ("sweep", "-y", "--on", "burst", "grid.yaml")):
            done = world.run(*words)
            assert done.code == 2, done.err
            assert "a run takes 3 workers at once, but burst has 2" in done.err
            assert "workers: 3 under fleets" in done.err
        assert world.gce.left() == []
        gang_of(world, 2, 2, more="network: lab")
        done = world.run("plan", "grid.yaml", "--on", "burst", HOSTLER_PORTS="20000-20100")
        assert done.code == 0, done.err
        assert "gcloud compute firewall-rules create lab-internal --network lab" in done.out
        assert "--allow tcp:20000-20100" in done.out
