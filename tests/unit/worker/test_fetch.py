from __future__ import annotations

import http.server
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_store import PlainStore

from hostler.errors import MissingError, PrepareError
from hostler.worker.prepare import data_dir


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/none"):
            self.send_error(404)
            return
        body = b"a,b\n1,2\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (5 if "short" in self.path else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def web() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_a_file_is_fetched_under_its_own_name(web: str, place: Path) -> None:
    url = f"{web}/sets/my%20data.csv?version=1"
    data_dir.fetch(url, place)
    assert data_dir.found_at(url, place) == place / "my data.csv"
    assert (place / "my data.csv").read_bytes() == b"a,b\n1,2\n"


@pytest.mark.parametrize("path", ["/short.csv", "/none.csv"])
def test_a_short_or_missing_answer_is_an_error(web: str, place: Path, path: str) -> None:
    with pytest.raises((PrepareError, MissingError), match=f"cannot fetch .*{path}"):
        data_dir.fetch(web + path, place)


def test_a_server_that_is_not_there_is_one_clear_line(place: Path) -> None:
    with pytest.raises(PrepareError, match="cannot fetch"):
        data_dir.fetch("http://127.0.0.1:1/x", place)


def test_an_archive_is_unpacked_and_not_kept(tmp_path: Path, place: Path) -> None:
    (tmp_path / "x.csv").write_text("1")
    with tarfile.open(tmp_path / "set.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "x.csv", "in/x.csv")
    url = (tmp_path / "set.tar.gz").as_uri()
    data_dir.fetch(url, place)
    assert (data_dir.found_at(url, place) / "in" / "x.csv").read_text() == "1"
    assert os.listdir(place) == ["in"] and "place.archive" not in os.listdir(tmp_path)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainStore:
    """A bucket whose parts are folders."""
    monkeypatch.setattr(
        "hostler.store.open_store", lambda url: PlainStore(tmp_path / url.replace("gs://", ""))
    )
    store = PlainStore(tmp_path / "bucket")
    store.put("census/2020/a.csv", b"a")
    store.put("census/b.csv", b"b")
    return store


def test_all_under_a_prefix_is_fetched(bucket: PlainStore, place: Path) -> None:
    data_dir.fetch("gs://bucket/census/", place)
    assert data_dir.found_at("gs://bucket/census/", place) == place
    assert (place / "2020" / "a.csv").read_text() == "a" and (place / "b.csv").read_text() == "b"


def test_one_object_is_fetched(bucket: PlainStore, place: Path) -> None:
    data_dir.fetch("gs://bucket/census/b.csv", place)
    assert data_dir.found_at("gs://bucket/census/b.csv", place).read_text() == "b"


@pytest.mark.parametrize("url", ["gs://bucket/none/", "gs://bucket/census"])
def test_nothing_there_is_one_clear_line(bucket: PlainStore, place: Path, url: str) -> None:
    with pytest.raises(MissingError, match=url):
        data_dir.fetch(url, place)
