"""A cluster behind a proxy that answers nonsense, and a login that expires: one line, nothing half-made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.backends.base import Launch
from hostler.backends.kubernetes.backend import KubernetesBackend
from hostler.backends.kubernetes.client import KubeClient, connect
from hostler.errors import CloudError, CloudUnavailable
from hostler.spec.project import Fleet
from kube_answers import EXPIRED, GONE, PAGE, cluster

FLEET = Fleet("gke", "kubernetes", workers=2, scope="cifar")
LAUNCH = Launch(
    "s3://bucket/runs", generation="gke/1", parcels=(("library/ab.zip", "ab"),), secrets={"TOKEN": "hush"}
)


def quick(fleet: Fleet) -> KubeClient:
    return replace(connect(fleet), pause=lambda seconds: None)


def backend(said: list[str] | None = None) -> KubernetesBackend:
    return KubernetesBackend(
        connect=quick, pause=lambda seconds: None, say=(said if said is not None else []).append
    )


@pytest.mark.parametrize("code", [200, 502, 503])
def test_page_of_a_proxy_is_one_line(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        cluster(lambda *_: (code, PAGE), tmp_path, monkeypatch) as asked,
        pytest.raises(CloudUnavailable) as error,
    ):
        backend().list(FLEET)
    assert "proxy" in error.value.message and "\n" not in str(error.value)
    assert "kubectl --context c version" in error.value.hint and len(asked) == 3


def test_login_page_with_401_asks_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        cluster(lambda *_: (401, PAGE), tmp_path, monkeypatch),
        pytest.raises(CloudError, match="does not know you") as error,
    ):
        backend().list(FLEET)
    assert "log in again" in error.value.hint


def test_job_whose_making_was_not_answered_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(method: str, path: str, body: bytes) -> tuple[int, object]:
        if method == "POST":
            return 502, PAGE
        return (404, GONE) if method == "GET" else (200, {"kind": "Status", "status": "Success"})

    with cluster(answer, tmp_path, monkeypatch) as asked:
        engine = backend()
        with pytest.raises(CloudUnavailable):
            engine.start(engine.plan(FLEET, LAUNCH))
    job = "/apis/batch/v1/namespaces/default/jobs"
    assert asked[-2:] == [f"POST {job}", f"DELETE {job}/hostler-cifar-gke-1"]


def test_login_that_expires_after_the_job_names_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()

    def answer(method: str, path: str, body: bytes) -> tuple[int, object]:
        if made:
            return 401, EXPIRED
        if method == "POST":
            made.append(path)
            return 201, {**json.loads(body), "metadata": {"name": "hostler-cifar-gke-1", "uid": "1"}}
        return (404, GONE) if method == "GET" else (200, {"kind": "Status", "status": "Success"})

    with cluster(answer, tmp_path, monkeypatch):
        engine = backend()
        with pytest.raises(CloudError, match="does not know you") as error:
            engine.start(engine.plan(FLEET, LAUNCH))
    assert "kubectl delete job hostler-cifar-gke-1" in error.value.hint


def test_login_that_expires_while_watched_leaves_the_launch_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, said = list[str](), list[str]()

    def answer(method: str, path: str, body: bytes) -> tuple[int, object]:
        if method == "POST":
            made.append(path)
            return 201, {**json.loads(body), "metadata": {"name": "hostler-cifar-gke-1", "uid": "1"}}
        if len(made) == 2:
            return 401, EXPIRED
        return (404, GONE) if method == "GET" else (200, {"kind": "Status", "status": "Success"})

    with cluster(answer, tmp_path, monkeypatch):
        engine = backend(said)
        [job] = engine.start(engine.plan(FLEET, LAUNCH))
    assert (job.id, job.alive, job.count) == ("hostler-cifar-gke-1", True, 2)
    assert "goes on, and cannot be watched" in said[-1] and "log in again" in said[-1]
