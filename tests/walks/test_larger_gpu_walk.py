"""Runs that die of memory on the small GPU of an emulated VM end on the next larger one of their launch.

The emulated machines have no GPU: a driver library is built for them, which tells one GPU, small or large by
the speed that the emulator gives the type of the machine.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gce_world import TRAIN, CloudWorld, cloud, weights

SMALL, LARGE = 15_843_721_216, 24_152_899_584  # bytes of a T4 and of an L4, as their drivers tell them
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned long long total, unused, used; } memory;
static int large(void) { return atof(getenv("EMULATED_SPEED")) > 1; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &large; return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "GPU-%s", large() ? "large" : "small");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
    found->total = found->unused = large() ? LARGE : SMALL;
    found->used = 0;
    return 0;
}
"""
DIES = """
import os, sys
if os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-small":
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr)
    raise SystemExit(1)
"""


def give_gpus(world: CloudWorld) -> None:
    """Machines that start from now on have a driver; that of an L4 tells more memory."""
    folder = world.folder.parent / "driver"
    folder.mkdir()
    (folder / "nvml.c").write_text(DRIVER)
    sizes = [f"-DSMALL={SMALL}ULL", f"-DLARGE={LARGE}ULL"]
    library = str(folder / "libnvidia-ml.so.1")
    subprocess.run(["gcc", *sizes, "-shared", "-fPIC", "-o", library, str(folder / "nvml.c")], check=True)
    world.gce.speed("g2-standard-8", 2.0)
    made = world.gce._world
    made.guest_env = {**made.guest_env, "LD_LIBRARY_PATH": str(folder)}


@pytest.mark.needs("gcc")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "wish",
    [{"gpu": ["T4:1", "L4:1", "A100:1"], "spot": "prefer"}, {"gpu": ["T4:1", "L4:1"]}],
    ids=["beside the small one", "in its place"],
)
def test_memory_death_moves_to_the_next_larger_machine_once(tmp_path: Path, wish: dict[str, object]) -> None:
    """Two runs are enough for the sweep to know, and no run is tried on the small one twice. A place is free
    before the end of its run is written: the small one may take a third run while the second's is. The second
    wish has no money for both machines at once."""
    with cloud(tmp_path, scale=60) as world:
        give_gpus(world)
        fleet = {"backend": "gce", "project": world.gce.project, "zones": ["us-central1"], "workers": 1}
        project = {"name": "cifar", "store": "gs://runs/cifar", "fleets": {"burst": {**fleet, **wish}}}
        world.write("hostler.yaml", json.dumps(project))
        world.write("train.py", DIES + TRAIN)
        world.sweep_file(4)
        world.launched("grid.yaml", timeout=200)
        world.until_gone(300)
        assert world.states() == {"done": 4}
        assert world.weights(4) == {n: weights(n) for n in range(4)}
        used = [one.type for one in world.gce.usage() if one.kind == "machine"]
        assert used == ["n1-standard-8", "g2-standard-8"]  # and no A100
        rows = world.run("status", "grid", "--json").json
        attempts = sorted(row["attempt"] for row in rows)
        assert attempts in ([1, 1, 2, 2], [1, 2, 2, 2]), "some never saw the small one"
        plan = world.run("plan", "--on", "burst", "--json", "grid.yaml", timeout=60).json["price"]
        assert not any("T4" in one["machine"] for one in plan["offers"]), plan
        assert any("T4" in line and "out of memory" in line for line in plan["left_out"])
