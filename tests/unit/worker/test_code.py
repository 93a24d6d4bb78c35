from __future__ import annotations

import base64
import hashlib
import http.server
import io
import os
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
from plain_store import PlainStore

from hostler.errors import DamagedError, PrepareError
from hostler.records import layout
from hostler.spec.job import Source
from hostler.worker.prepare.code import code_dir, identity, working_copy

pytestmark = pytest.mark.needs("git")


def quiet(_: str) -> None:
    return None


def stored(store: PlainStore, **files: str) -> str:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{name}.py")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    sha = hashlib.sha256(out.getvalue()).hexdigest()
    store.put(layout.code(sha), out.getvalue())
    return sha


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (folder / "train.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    return folder


def test_a_snapshot_is_unpacked_once(tmp_path: Path) -> None:
    store = PlainStore(tmp_path / "store")
    source = Source(snapshot=stored(store, train="x"))
    first = code_dir(store, source, tmp_path / "cache", quiet)
    assert code_dir(store, source, tmp_path / "cache", quiet) == first
    assert (first / "train.py").read_text() == "x" and identity(first) == source.snapshot
    assert (store.root / "downloads.log").read_text().count("\n") == 1
    assert {p.name for p in first.parent.iterdir()} == {
        first.name,
        f"{first.name}.files",
        f"{first.name}.lock",
    }


def test_a_damaged_snapshot_is_refused_and_not_kept(tmp_path: Path) -> None:
    store = PlainStore(tmp_path / "store")
    sha = stored(store, train="x")
    good = store.get(layout.code(sha)).data
    store.put(layout.code(sha), good[:-9] + b"\0" + good[-8:])
    with pytest.raises(DamagedError, match=sha):
        code_dir(store, Source(snapshot=sha), tmp_path / "cache", quiet)
    store.put(layout.code(sha), good)
    assert code_dir(store, Source(snapshot=sha), tmp_path / "cache", quiet).is_dir()


def test_a_missing_snapshot_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match="not in the store"):
        code_dir(PlainStore(tmp_path), Source(snapshot="0" * 64), tmp_path / "cache", quiet)


def test_a_job_without_code_starts_in_an_empty_folder(tmp_path: Path) -> None:
    assert os.listdir(code_dir(PlainStore(tmp_path), Source(), tmp_path / "cache", quiet)) == []


def test_any_commit_of_a_repository_is_checked_out(tmp_path: Path, repo: Path) -> None:
    store = PlainStore(tmp_path / "store")
    for ref, text in (("HEAD~1", "one"), ("HEAD", "two")):
        source = Source(git=str(repo), ref=git(repo, "rev-parse", ref))
        assert (code_dir(store, source, tmp_path / "cache", quiet) / "train.py").read_text() == text


def test_server_without_single_commits_is_asked_for_all(tmp_path: Path, repo: Path) -> None:
    git(repo, "config", "protocol.version", "0")
    git(repo, "update-server-info")
    handler = _handler(repo / ".git", [])
    with _serving(handler) as url:
        source = Source(git=f"{url}/", ref=git(repo, "rev-parse", "HEAD~1"))
        found = code_dir(PlainStore(tmp_path / "store"), source, tmp_path / "cache", quiet)
    assert (found / "train.py").read_text() == "one"


def test_an_unknown_commit_says_what_git_said(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(PrepareError, match="fetching"):
        code_dir(PlainStore(tmp_path), Source(git=str(repo), ref="1" * 40), tmp_path / "cache", quiet)


def test_the_token_reaches_the_server_and_stays_off_the_disk(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "update-server-info")
    seen: list[str] = []
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    with _serving(_handler(repo / ".git", seen)) as url:
        source = Source(git=f"{url}/", ref=git(repo, "rev-parse", "HEAD"), token_secret="MY_TOKEN")
        found = code_dir(PlainStore(tmp_path / "store"), source, tmp_path / "cache", quiet)
    basic = base64.b64encode(b"x-access-token:s3cret").decode()
    assert set(seen) == {f"Basic {basic}"}
    kept = b"".join(path.read_bytes() for path in found.rglob("*") if path.is_file())
    assert b"s3cret" not in kept and basic.encode() not in kept


def test_an_unset_token_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_TOKEN", raising=False)
    source = Source(git="https://127.0.0.1:1/x", ref="1" * 40, token_secret="MY_TOKEN")
    with pytest.raises(PrepareError, match="MY_TOKEN"):
        code_dir(PlainStore(tmp_path), source, tmp_path / "cache", quiet)


def test_a_run_may_write_to_its_copy(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "lib" / "go.sh").write_text("x")
    (code / "lib" / "go.sh").chmod(0o755)
    (code / "link").symlink_to("lib/go.sh")
    for _ in range(2):  # a second attempt finds the first one's copy
        copy = working_copy(code, tmp_path / "run" / "code")
        assert os.readlink(copy / "link") == "lib/go.sh" and os.access(copy / "lib" / "go.sh", os.X_OK)
        assert not (copy / "new").exists()
        (copy / "lib" / "go.sh").write_text("changed")
        (copy / "new").touch()
    assert (code / "lib" / "go.sh").read_text() == "x"


def _handler(root: Path, seen: list[str]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **more: object) -> None:
            super().__init__(*args, directory=str(root), **more)  # type: ignore[arg-type]

        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            super().do_GET()

        def log_message(self, *_: object) -> None:
            return

    return Handler


class _serving:
    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
