"""Walk 4: spot VMs are taken away, and the runs end elsewhere with the same weights; then nothing is left.

It writes a history, which is judged by tests/history/checker.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))

from recorder import Recorder, undisturbed
from schedule import repeatable

from gce_world import TRAIN, CloudWorld, Weather, cloud, weights


def violations(world: CloudWorld, history: Recorder, folder: Path) -> list[str]:
    """What the checker says of all runs of the sweep, and of what is left of its machines."""
    words = {row["id"]: ("--lr", str(row["params"]["lr"])) for row in world.run("status", "--json").json}
    outputs = folder / "outputs"
    outputs.mkdir()
    quick = TRAIN.replace("time.sleep(given.nap)", "pass")
    history.expect(undisturbed(quick, folder / "undisturbed", words, {"HOSTLER_OUTPUT_DIR": str(outputs)}))
    cache, tmp = Path(world.env["HOSTLER_CACHE"]), Path(world.env["TMPDIR"])
    return history.close(list(words), cache, tmp, machines=world.gce.left())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("runs", "vms", "strikes"), [(4, 2, 3), pytest.param(40, 6, 18, marks=pytest.mark.soak)]
)
def test_sweep_on_preempted_spot_vms_has_the_same_weights(
    tmp_path: Path, runs: int, vms: int, strikes: int
) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=vms)
        world.sweep_file(runs, nap=0.4)
        world.gce.stockout("us-central1-a")
        world.gce.lose_answer("*Managers.insert")
        weather = Weather(world, strikes, seed=repeatable(runs if runs > 4 else None))
        weather.start()
        with Recorder("gs://runs/cifar", tmp_path / "evidence", "grid", world.env) as history:
            world.launched("grid.yaml", timeout=300)
            world.until_gone(150 + 15 * runs)
        weather.stop()
        assert world.states() == {"done": runs}
        assert world.weights(runs) == {n: weights(n) for n in range(runs)}
        assert weather.struck
        for name, kind in weather.struck:
            history.add("killed", kind="machine", machine=name, how=kind)
        assert violations(world, history, tmp_path) == []
