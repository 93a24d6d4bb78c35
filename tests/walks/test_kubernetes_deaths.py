"""Pods that die hard on the stand-in: who goes on with their runs, how soon, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_world import weights
from hostler.emulators.k8s import Pace
from hostler.records.run.history import tries
from hostler.records.run.log import CLAIM, RunKey, RunLog
from hostler.store import open_store
from k8s_world import REAL, Pods, pods
from platform_takeovers import AT_ONCE, FAR, STEPS, node_cut, pod_filled_again

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.needs("kubectl"),
    pytest.mark.skipif(bool(REAL), reason="nobody kills for memory there when a test asks for it"),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Pods]:
    with pods(tmp_path) as made:
        yield made


def held(world: Pods) -> Path:
    """A file in the one folder that pods and this machine share."""
    return Path(world.url, "hold")


def done(world: Pods) -> None:
    """With the weights of a training that nobody disturbed."""
    held(world).unlink()
    world.until_done(1)
    world.until_ended()
    assert world.weights(1) == {0: weights(0, STEPS)}


def started(world: Pods) -> str:
    """The pod that has the one run of a sweep, which has saved something and waits."""
    world.project(1, head="retries: 2")
    held(world).touch()
    world.sweep_file(1, steps=STEPS, hold=str(held(world)))
    launched = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
    assert launched.code == 0, launched.err
    world.until(lambda: any((row.step or 0) > 3 for row in world.rows("grid")))
    [pod] = world.pods()
    return pod


def run_log(world: Pods) -> RunLog:
    [row] = world.rows("grid")
    return RunLog(open_store(world.url), RunKey("grid", row.id))


def successor(world: Pods, pod: str) -> str:
    """The pod that the Job has made in its place, once the run is its."""
    found = list[str]()

    def is_there() -> bool:
        found[:] = [name for name in world.pods() if name != pod]
        claims = [one for one in run_log(world).read_on().entries if one["kind"] == CLAIM]
        return bool(found) and len(claims) > 1

    world.until(is_there)
    return found[0]


def may_list_pods(world: Pods) -> None:
    world.project(1)
    role = world.run("up", "gke", "--role", "me")
    assert role.code == 0, role.err
    world.write("role.yaml", role.out)
    world.kubectl("apply", "-f", str(world.folder / "role.yaml"))


def test_pod_evicted_for_its_disk_ends_its_attempt_as_disk_full(world: Pods) -> None:
    may_list_pods(world)
    assert world.cluster
    pod = started(world)
    world.cluster.exceed_disk(pod)
    successor(world, pod)
    first = tries(run_log(world).read_on().entries)[0]
    assert first.words.startswith("disk-full"), first
    said = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi."
    assert first.failure and f"more disk than it was given ({said})" in first.failure["message"]
    done(world)


def test_pod_killed_for_memory_ends_its_attempt_as_memory(world: Pods) -> None:
    may_list_pods(world)
    assert world.cluster
    pod = started(world)
    world.cluster.kill(pod, "OOMKilled")
    successor(world, pod)
    first = tries(run_log(world).read_on().entries)[0]
    assert first.words.startswith("memory"), first
    assert first.failure and "more memory than it was given" in first.failure["message"]
    done(world)


def test_pod_of_the_same_index_goes_on_at_once(world: Pods) -> None:
    """Its lease is far from over; without the Role for pods nobody says how the first one ended."""
    assert pod_filled_again(world).within(AT_ONCE)
    assert tries(run_log(world).read_on().entries)[0].words == "lost"
    done(world)


def test_run_of_a_cut_node_goes_on_after_one_lease(tmp_path: Path) -> None:
    """The cluster shows its pod as running all the while; `status` does not."""
    beat, lease = 0.5, 6.0
    with pods(tmp_path, pace=Pace(node_gone=float(FAR))) as world:
        assert node_cut(world, beat, lease).within(lease + 2 * beat)
        assert len(world.pods()) == 2
        world.sweep_file(6, name="late", steps=600)  # more than one worker has room for
        assert world.run("sweep", "-y", "--no-start", "late.yaml").code == 0
        said = world.run("status").out
        assert "1 run, 1 started, no sign of life yet" in said, said
        held(world).unlink()
        world.until_done(3)
        assert world.weights(3) == {lr: weights(lr, STEPS) for lr in range(3)}
