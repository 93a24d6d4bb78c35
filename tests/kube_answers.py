"""A cluster's API that answers whatever a test says: pages of a proxy, refusals, an end of the login."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

PAGE = b"<html><body>Sign in to continue</body></html>"
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
EXPIRED = {**GONE, "reason": "Unauthorized", "message": "Unauthorized", "code": 401}

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
