"""A cluster behind a proxy that answers nonsense, and a login that expires: one line, nothing half-made."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from hostler.backends.base import Launch
from hostler.backends.kubernetes.backend import KubernetesBackend
from hostler.backends.kubernetes.client import KubeClient, connect
from hostler.errors import CloudError, CloudUnavailable
from hostler.spec.project import Fleet

PAGE = b"<html><body>Sign in to continue</body></html>"
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
EXPIRED = {**GONE, "reason": "Unauthorized", "message": "Unauthorized", "code": 401}
FLEET = Fleet("gke", "kubernetes", workers=2, scope="cifar")
LAUNCH = Launch(
    "s3://bucket/runs", generation="gke/1", parcels=(("library/ab.zip", "ab"),), secrets={"TOKEN": "hush"}
)

Answer = Callable[[str, str, bytes], tuple[int, object]]  # of method, path and body; bytes are a page


@contextmanager
def cluster(answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was asked of a server that answers so."""
    asked = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(f"{self.command} {self.path.partition('?')[0]}")
            code, said = answer(self.command, self.path, body)
            page = isinstance(said, bytes)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/html" if page else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_PATCH = _reply

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        yield asked
        server.shutdown()


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
