"""Walk 4: spot VMs are taken away, and the runs end elsewhere with the same weights; then nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from gce_world import Weather, cloud, weights


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
        weather = Weather(world, strikes, seed=runs)
        weather.start()
        world.launched("grid.yaml", timeout=300)
        world.until_gone(150 + 15 * runs)
        weather.stop()
        assert world.states() == {"done": runs}
        assert world.weights(runs) == {n: weights(n) for n in range(runs)}
        assert weather.struck
