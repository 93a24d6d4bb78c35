"""A git repository behind a token, on loopback."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with these files on `main`, ready to be served as plain files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    steps = (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        [*who, "commit", "-q", "-m", "x"],
        ["update-server-info"],
    )
    for words in steps:
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@contextmanager
def private(folder: Path, token: str) -> Iterator[str]:
    """A repository that is shown to who has the token."""
    wanted = "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != wanted:
                self.send_error(401)
            else:
                super().do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
