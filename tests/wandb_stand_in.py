"""A stand-in of W&B's server: as much of its API as `wandb` asks for a run that goes on by its id.

Questions (GraphQL) are told apart by their operations' names. Rows of history are kept at the offset that the
client gives, as W&B keeps them: a client that begins again at 0 writes over what was there.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789" * 4  # of the length that wandb takes  # gitleaks:allow
ME = "me"
_OPERATION = re.compile(r"(?:query|mutation)\s+(\w+)")
_DAY = "2026-01-01T00:00:00"


@dataclass
class Run:
    """A run as the server has it; `told` is what its clients said of it, newest words first."""

    name: str
    project: str
    told: dict[str, Any] = field(default_factory=dict)
    history: dict[int, str] = field(default_factory=dict)  # rows by their offsets
    summary: str = "{}"
    ends: list[int] = field(default_factory=list)  # exit codes of its clients

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(self.history[place]) for place in sorted(self.history)]

    def curve(self, name: str) -> list[tuple[int, float]]:
        return [(row["step"], row[name]) for row in self.rows if name in row]

    @property
    def config(self) -> dict[str, Any]:
        said = json.loads(self.told.get("config") or "{}")
        return {name: held["value"] for name, held in said.items()}

    def keep(self, files: dict[str, Any]) -> None:
        if rows := files.get("wandb-history.jsonl"):
            self.history |= dict(enumerate(rows["content"], rows["offset"]))
        if summary := files.get("wandb-summary.json"):
            self.summary = summary["content"][-1]


@dataclass
class Server:
    url: str = ""
    runs: dict[str, Run] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)  # operations that are not here

    def answer(self, path: str, data: bytes) -> dict[str, Any] | None:
        """None where a server has nothing under that path."""
        if path == "/graphql":
            body = json.loads(data)
            named = _OPERATION.search(body["query"])
            name = named[1] if named else ""
            known = getattr(self, f"_{name}", None)
            if known is None:
                self.unknown.append(name)
            return {"data": known(body.get("variables") or {}) if known else None}
        if path.startswith("/files/") and path.endswith("/file_stream"):
            run, body = self.runs[path.split("/")[-2]], json.loads(data)
            run.keep(body.get("files") or {})
            run.ends += [body["exitcode"]] if body.get("complete") else []
            return {"limits": {}}
        return None

    def _RunResumeStatus(self, asked: dict[str, Any]) -> Any:
        run = self.runs.get(asked["name"])
        if run is None:
            return {"model": None}
        counts = {"logLineCount": 0, "eventsLineCount": 0, "eventsTail": "[]"}
        tail = json.dumps([run.history[place] for place in sorted(run.history)[-1:]])
        # A run has begun for W&B when its client has said which features it uses.
        begun = json.dumps({"t": run.config["_wandb"]["t"]})
        bucket = {**_bucket(run), **counts, "historyTail": tail, "wandbConfig": begun}
        return {"model": {**_project(run), "bucket": bucket}}

    def _UpsertBucket(self, asked: dict[str, Any]) -> Any:
        name = asked["name"]
        new = name not in self.runs
        run = self.runs.setdefault(name, Run(name, asked["project"]))
        run.told |= {word: value for word, value in asked.items() if value is not None}
        return {"upsertBucket": {"bucket": _bucket(run), "inserted": new}}

    def _CreateRunFiles(self, _: dict[str, Any]) -> Any:
        return {"createRunFiles": {"runID": "1", "uploadHeaders": [], "files": []}}

    def _Viewer(self, _: dict[str, Any]) -> Any:
        viewer = {"id": "1", "entity": ME, "username": ME, "email": "", "flags": "{}"}
        return {"viewer": {**viewer, "teams": {"edges": []}}}

    _GetDefaultEntity = _Viewer

    def _Run(self, asked: dict[str, Any]) -> Any:
        run = self.runs.get(asked["name"])
        return {"project": {"run": run and _bucket(run)}}

    _RunHistoryKeys = _Run

    def _Runs(self, asked: dict[str, Any]) -> Any:
        found = [run for run in self.runs.values() if run.project == asked["project"]]
        edges = [{"node": _bucket(run), "cursor": run.name} for run in found]
        page = {"endCursor": None, "hasNextPage": False}
        runs = {"edges": edges, "pageInfo": page, "totalCount": len(found)}
        return {"project": {"internalId": "1", "readOnly": False, "runCount": len(found), "runs": runs}}

    def _RunParquetHistory(self, asked: dict[str, Any]) -> Any:
        rows = self.runs[asked["runName"]].rows
        return {"project": {"run": {"parquetHistory": {"parquetUrls": [], "liveData": rows}}}}

    def _HistoryPage(self, asked: dict[str, Any]) -> Any:
        wanted = range(asked["minStep"], asked["maxStep"])
        run = self.runs[asked["run"]]
        rows = [json.dumps(row) for row in run.rows if row["_step"] in wanted]
        return {"project": {"run": {"history": rows[: asked["pageSize"]]}}}


def _project(run: Run) -> dict[str, Any]:
    return {"id": "1", "name": run.project, "entity": {"id": "1", "name": ME}}


def _bucket(run: Run) -> dict[str, Any]:
    """Every field that some question has."""
    empty = dict.fromkeys(("description", "sweepName", "notes", "jobType", "commit"))
    last = max((row["_step"] for row in run.rows), default=-1)
    return empty | {
        "id": run.name,
        "name": run.name,
        "displayName": run.told.get("displayName"),
        "config": run.told.get("config", "{}"),
        "group": run.told.get("groupName"),
        "tags": run.told.get("tags", []),
        "state": "finished" if run.ends else "running",
        "project": _project(run),
        "projectId": "1",
        "user": {"name": ME, "username": ME},
        "readOnly": False,
        "createdAt": _DAY,
        "heartbeatAt": _DAY,
        "systemMetrics": "{}",
        "summaryMetrics": run.summary,
        "historyLineCount": len(run.history),
        "historyKeys": {"lastStep": last, "keys": {}},
    }


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def _reply(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            found = server.answer(self.path, data)
            text = b"" if self.command == "HEAD" else json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_HEAD = _reply

    class Http(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that was killed in the middle of a question is none of its."""

    with Http(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        threading.Thread(target=http.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            http.shutdown()
