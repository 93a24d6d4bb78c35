"""A stand-in of the Hugging Face hub: what `huggingface_hub` asks to make a model, commit to it and read it.

Repositories are in memory. Files whose names end in `.safetensors` go the way of large files (LFS).
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

TOKEN = "hf_standinTOKENofthistest"  # gitleaks:allow


class Hub:
    """`repos`: name (`datasets/…` of a dataset) → file → bytes; `private`: name → bool; `asked`: every
    request line."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.messages: list[str] = []
        self.large: dict[str, bytes] = {}
        self.asked: list[str] = []
        hub = self

        class Handler(_Handler):
            state = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def oid(self, name: str) -> str:
        return hashlib.sha1(repr((name, len(self.messages))).encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    state: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *given: Any) -> None: ...

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, value: Any, code: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        for name, text in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _allowed(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        said = "Invalid username or password."
        self._send({"error": said}, 401, {"X-Error-Message": said})
        return False

    def _path(self) -> list[str]:
        self.state.asked.append(f"{self.command} {self.path}")
        return [unquote(part) for part in urlparse(self.path).path.strip("/").split("/")]

    def do_POST(self) -> None:
        path, body = self._path(), self._body()
        if not self._allowed():
            return
        if path == ["api", "repos", "create"]:
            asked = json.loads(body)
            owner = asked.get("organization") or "me"
            name = f"{owner}/{asked['name'].rpartition('/')[2]}"
            if name in self.state.repos:
                self._send({"error": "exists", "url": f"{self.state.url}/{name}"}, 409)
                return
            self.state.repos[name] = {}
            self.state.private[name] = bool(asked.get("private") or asked.get("visibility") == "private")
            self._send({"url": f"{self.state.url}/{name}", "name": name})
        elif path[:2] == ["api", "models"] and path[4:5] == ["preupload"]:
            files = json.loads(body)["files"]
            way = {True: "lfs", False: "regular"}
            shown = [
                {
                    "path": f["path"],
                    "uploadMode": way[f["path"].endswith(".safetensors")],
                    "shouldIgnore": False,
                }
                for f in files
            ]
            self._send({"files": shown})
        elif path[-3:] == ["lfs", "objects", "batch"]:
            objects = json.loads(body)["objects"]
            self._send({"transfer": "basic", "objects": [self._slot(one) for one in objects]})
        elif path[:2] == ["api", "models"] and path[4:5] == ["commit"]:
            self._commit("/".join(path[2:4]), body)
        elif path[:2] == ["api", "validate-yaml"]:
            self._send({"errors": [], "warnings": []})
        else:
            self._send({"error": f"not known: {self.path}"}, 404)

    def _slot(self, one: dict[str, Any]) -> dict[str, Any]:
        there = {"upload": {"href": f"{self.state.url}/objects/{one['oid']}"}}
        return {"oid": one["oid"], "size": one["size"], "actions": there}

    def _commit(self, name: str, body: bytes) -> None:
        files = self.state.repos[name]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                self.state.messages.append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.state.large[value["oid"]]
        oid = self.state.oid(name)
        self._send({"commitUrl": f"{self.state.url}/{name}/commit/{oid}", "commitOid": oid, "hookOutput": ""})

    def do_PUT(self) -> None:
        path, body = self._path(), self._body()
        assert hashlib.sha256(body).hexdigest() == path[1]
        self.state.large[path[1]] = body
        self._send(b"")

    def do_GET(self) -> None:
        path = self._path()
        if not self._allowed():
            return
        if path[:2] == ["api", "whoami-v2"]:
            self._send({"name": "me", "type": "user", "orgs": []})
            return
        kind = "datasets/" if "datasets" in path[:2] else ""
        if path[0] == "datasets":
            path = path[1:]
        name = kind + "/".join(path[2:4] if path[0] == "api" else path[:2])
        files = self.state.repos.get(name)
        if files is None:
            self._send({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        elif path[0] == "api" and path[4:5] == ["tree"]:
            parse_qs(urlparse(self.path).query)
            below = "".join(f"{part}/" for part in path[6:])
            found = {n: b for n, b in files.items() if n.startswith(below)}
            self._send(
                [{"type": "file", "path": n, "size": len(b), "oid": _sha(b)} for n, b in found.items()]
            )
        elif path[:2] == ["api", "models"]:
            shown = {"id": name, "sha": self.state.oid(name), "private": self.state.private[name], "tags": []}
            self._send({**shown, "siblings": [{"rfilename": n} for n in files]})
        elif path[2:3] == ["resolve"] and "/".join(path[4:]) in files:
            data = files["/".join(path[4:])]
            self._send(data, 200, {"ETag": f'"{_sha(data)}"', "X-Repo-Commit": self.state.oid(name)})
        else:
            self._send({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_GET


def _sha(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
