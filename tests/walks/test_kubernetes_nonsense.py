"""`hostler sweep` on a cluster behind a proxy, or with a login that ends: what is left is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_world import Answer, World
from hostler.errors import CloudUnavailable
from hostler.records.rows import rows
from hostler.store import open_store
from kube_answers import EXPIRED, GONE, PAGE, cluster

SPACE = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}
DONE = (200, {"kind": "Status", "status": "Success"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    own = f"volumes: {{{made.store}: {{host: {made.store}}}}}"
    fleet = f"{{backend: kubernetes, image: python, workers: 1, {own}}}"
    made.write("hostler.yaml", f"name: p\nstore: {made.store}\nfleets:\n  gke: {fleet}\n")
    values = {"name": "grid", "command": "python train.py", "parameters": {"lr": [1, 2]}}
    made.write("grid.yaml", json.dumps(values))
    yield made
    made.close()


def swept(world: World, tmp_path: Path) -> Answer:
    return world.run("sweep", "-y", "--on", "gke", "grid.yaml", KUBECONFIG=str(tmp_path / "config"))


def left(world: World) -> list[str]:
    """States of the runs that were submitted."""
    return [row.state for row in rows(open_store(str(world.store)))]


def begun(method: str, path: str, body: bytes) -> tuple[int, object]:
    """A cluster with nothing but its namespace, where everything is allowed."""
    place = path.partition("?")[0]
    if method == "GET" and place.endswith(("/jobs", "/pods", "/events", "/secrets")):
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}
    if method == "GET":
        return (200, SPACE) if place.endswith("/namespaces/default") else (404, GONE)
    if place.endswith("/selfsubjectaccessreviews"):
        return 201, {**json.loads(body), "status": {"allowed": True}}
    return DONE


@pytest.mark.parametrize("code", [200, 502])
def test_sweep_behind_a_proxy_submits_nothing(
    world: World, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(lambda *_: (code, PAGE), tmp_path, monkeypatch):
        done = swept(world, tmp_path)
    assert done.code == 1 and done.out == ""
    assert re.fullmatch(
        r"hostler: the cluster of context c does not answer .* proxy .*\n(  → .*\n)*", done.err
    )
    assert left(world) == []


def test_sweep_whose_job_a_proxy_swallows_takes_it_down(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(method: str, path: str, body: bytes) -> tuple[int, object]:
        lost = method == "POST" and path.partition("?")[0].endswith("/jobs")
        return (502, PAGE) if lost else begun(method, path, body)

    with cluster(answer, tmp_path, monkeypatch) as asked:
        done = swept(world, tmp_path)
    assert done.code == CloudUnavailable.exit_code and "Traceback" not in done.err
    [line] = [one for one in done.err.splitlines() if "does not answer" in one]
    assert line.startswith("hostler: the cluster of context c") and "502, from a proxy in between" in line
    assert asked[-1].startswith("DELETE ") and asked[-1].endswith("/jobs/hostler-p-gke-1")
    assert left(world) == ["queued", "queued"]


def test_sweep_whose_login_ends_names_the_job_that_is_left(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()

    def answer(method: str, path: str, body: bytes) -> tuple[int, object]:
        if made:
            return 401, EXPIRED
        if method == "POST" and path.partition("?")[0].endswith("/jobs"):
            made.append(path)
            job = json.loads(body)
            return 201, {**job, "metadata": {**job["metadata"], "uid": "1"}}
        return begun(method, path, body)

    with cluster(answer, tmp_path, monkeypatch) as asked:
        done = swept(world, tmp_path)
    assert done.code == 0 and made, done.err
    [line] = [one for one in done.err.splitlines() if "cannot be watched" in one]
    assert line.startswith("hostler: hostler-p-gke-1 goes on") and "log in again" in line
    assert left(world) == ["queued", "queued"] and not [one for one in asked if one.startswith("DELETE")]
