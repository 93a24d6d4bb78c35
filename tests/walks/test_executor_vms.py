"""Functions called on VMs by `hostler.Executor` and by Hydra's launcher, one of them preempted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import servers
from gce_world import CloudWorld, cloud, eventually


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=60) as made:
        yield made


ON_VMS = """
import json
import hostler
from calls import square
if __name__ == "__main__":
    with hostler.Executor(on="burst") as pool:
        print(json.dumps([job.result() for job in pool.map(square, [2, 3])]))
"""


@contextmanager
def begun(world: CloudWorld, *words: str) -> Iterator[subprocess.Popen[str]]:
    pipe, command = subprocess.PIPE, [sys.executable, *words]
    with subprocess.Popen(
        command, cwd=world.folder, env=world.env, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(world: CloudWorld, *words: str) -> subprocess.CompletedProcess[str]:
    with begun(world, *words) as process:
        out, said = process.communicate(timeout=280)
    return subprocess.CompletedProcess(process.args, process.returncode, out, said)


# Slowly where nothing has taken it away yet: PLACE is there from its third step on.
COUNTED = """
import pathlib, time
import hostler
class Sum:
    value = 0
    def state_dict(self):
        return {"value": self.value}
    def load_state_dict(self, state):
        self.value = state["value"]
def square(x):
    total, seen = Sum(), []
    with hostler.start() as run:
        run.track(total=total)
        for step in run.steps(50 * x):
            seen.append(step)
            total.value += x
            time.sleep(0 if run.resumed or x > 2 else 0.2)
            if step == 2 == x:
                pathlib.Path("PLACE").touch()
    return total.value, bool(seen[0])
"""


def test_preempted_call_goes_on_at_its_step_on_another_vm(world: CloudWorld) -> None:
    world.project(workers=1)
    place = world.folder.parent / "begun"
    world.write("calls.py", COUNTED.replace("PLACE", str(place)))
    world.write("go.py", ON_VMS)
    with begun(world, "go.py") as process:
        eventually(place.exists, 60)
        [name] = world.gce.names()
        world.gce.preempt(name)
        out, said = process.communicate(timeout=240)
    assert out == "[[200, true], [450, false]]\n", said + world.story()
    world.until_gone()


HYDRA = """
import hydra
@hydra.main(version_base=None, config_path=None)
def main(config):
    return config.lr + 1
if __name__ == "__main__":
    main()
"""


def test_hydra_multirun_runs_on_vms_and_remembers(world: CloudWorld) -> None:
    servers.library("hydra")
    world.project(workers=1)
    world.write("tune.py", HYDRA)
    words = ["tune.py", "-m", "hydra/launcher=hostler", "hydra.launcher.on=burst", "+lr=2,3"]
    done = started(world, *words)
    assert done.returncode == 0 and "2 calls, 2 new" in done.stderr, done.stderr + world.story()
    world.until_gone()
    again = started(world, *words)
    assert again.returncode == 0 and "2 calls, 0 new" in again.stderr, again.stderr
    found = world.run("status", "--json").json
    assert sorted(row["metrics"]["result"] for row in found) == [3, 4] and not world.gce.left()
