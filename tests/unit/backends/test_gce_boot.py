"""A VM's first lines, where its metadata server does not answer for a moment, or at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import hostler
from hostler.backends import fetch
from hostler.backends.gce import boot
from hostler.backends.metadata import get_metadata
from hostler.errors import MachineError


class Server(HTTPServer):
    """Refuses so many questions first, with this status."""

    refuses, status, asked = 0, 503, 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        good = self.server.asked > self.server.refuses
        body = json.dumps({"deadline": 1}).encode()
        self.send_response(200 if good else self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: object) -> None: ...


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(boot.time, "sleep", found.append)
    return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{made.server_port}")
        thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


def test_briefly_silent_metadata_server_is_asked_again(
    server: Server, slept: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuses = 3
    assert boot.told() == {"deadline": 1}
    assert slept == [0.5, 1.0, 2.0] and capsys.readouterr().out == ""


def test_silent_metadata_server_is_reported_on_serial_port_and_reasked(
    server: Server, slept: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuses = fetch.TRIES + 1
    assert boot.told() == {"deadline": 1}
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("hostler: failed: the metadata server does not tell") and "503" in line
    assert boot.AGAIN in slept


def test_what_is_not_there_is_not_asked_for_again(server: Server, slept: list[float]) -> None:
    server.refuses, server.status = 1, 404
    with pytest.raises(OSError, match="404"):
        get_metadata("instance/attributes/none")
    assert slept == [] and server.asked == 1


def test_vm_without_an_address_in_its_metadata_still_works(server: Server, slept: list[float]) -> None:
    server.refuses, server.status = 1, 404
    assert boot.inside() == "" and slept == []
    assert boot.inside() == '{"deadline": 1}'


@pytest.mark.parametrize("level", ["", "library", "library/abc"])
def test_cache_that_others_write_makes_a_vm_unfit(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    (cache / "library" / "abc").mkdir(parents=True)
    monkeypatch.setenv("HOSTLER_CACHE", str(cache))
    settings = {"store": "gs://none", "parcels": [["library/abc.zip", "abc"]]}
    assert boot.bring(settings) == [str(cache / "library" / "abc")]
    (cache / level).chmod(0o777)
    with pytest.raises(MachineError, match=f"other users can write to {cache / level}"):
        boot.bring(settings)


def test_vm_that_cannot_use_the_store_starts_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe").write_text("a file where the worker makes a folder")
    said, code = list[str](), str(Path(hostler.__file__).parent.parent)
    told = {"variables": {}, "store": str(tmp_path), "parcels": [["library/ab.zip", "ab"]], "deadline": 0}
    for name, replaced in {
        "get_attribute": lambda name: told,
        "check": lambda settings: None,
        "bring": lambda settings: [code],
        "report": said.append,
        "work": lambda *given: pytest.fail("a worker was started"),
        "remove": lambda settings: None,
    }.items():
        monkeypatch.setattr(boot, name, replaced)
    monkeypatch.setattr(boot.time, "sleep", lambda seconds: None)
    assert boot.main() == 1
    assert said[0] == "began" and f"failed: no worker can use {tmp_path} here" in said[1]
