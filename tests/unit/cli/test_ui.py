"""`hostler ui` over real HTTP: who is let in, who may act, and what is answered."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cli_world import SOURCE
from hostler.analysis.board.serve import ListenAddress, _listen
from hostler.errors import MachineError
from hostler.records import layout
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from pseudo_terminal import on_terminal
from seen_world import HOSTILE, Seen, gallery


class Web:
    """Requests to a dashboard, with the token and whatever headers a test likes ('' leaves one out)."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, urlsplit(address)

    def ask(
        self, path: str, method: str = "GET", body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        made = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=120)
        usual = {"Host": self.address.netloc, "Authorization": f"Bearer {self.token}"}
        named = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        made.request(method, path, data, {name: value for name, value in named.items() if value})
        answer = made.getresponse()
        found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        made.close()
        return found

    def json(self, path: str) -> Any:
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    @property
    def origin(self) -> str:
        return f"http://{self.address.netloc}"

    @property
    def token(self) -> str:
        return self.address.fragment.removeprefix("token=")


@contextmanager
def served(store: str, *options: str, **variables: str) -> Iterator[Web]:
    command = [sys.executable, "-m", "hostler", "ui", "--store", store, "--no-browser", *options]
    variables = {"XDG_STATE_HOME": str(Path(store).parent / "state"), **variables}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **variables},
    )
    try:
        assert process.stdout is not None
        yield Web(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return gallery(tmp_path_factory.mktemp("seen") / "store")


@pytest.fixture(scope="module")
def web(seen: Seen) -> Iterator[Web]:
    with served(seen.url) as one:
        yield one


def test_dashboard_listens_on_loopback_alone(web: Web) -> None:
    assert web.address.hostname == "127.0.0.1"
    lines = Path(f"/proc/{web.process.pid}/net/tcp").read_text().splitlines()[1:]
    port = f":{web.address.port:04X}"
    heard = {line.split()[1] for line in lines if line.split()[1].endswith(port) and line.split()[3] == "0A"}
    assert heard == {f"0100007F{port}"}


DATA = (
    "/api/overview",
    "/api/runs?sweep=cifar-grid",
    "/api/events",
    "/api/table?sweep=cifar-grid",
    "/nowhere",
)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_data_need_the_token_on_every_address(seen: Seen, host: str) -> None:
    with served(seen.url, "--host", host, "--port", "0") as web:
        here = f"127.0.0.1:{web.address.port}"
        assert len(web.token) >= 32
        for path in DATA:
            for wrong in ("", "Bearer wrong", f"Bearer {web.token}x", f"Basic {web.token}"):
                assert web.ask(path, Host=here, Authorization=wrong)[0] == 401, path
            assert web.ask(f"{path}?token={web.token}", Host=here, Authorization="")[0] == 401
            cookie = f"token={web.token}; hostler-token={web.token}"
            assert web.ask(path, Host=here, Authorization="", Cookie=cookie)[0] == 401
        assert web.ask("/api/stop", "POST", {"runs": []}, Host=here, Authorization="")[0] in (401, 403)
        assert web.ask("/api/overview", Host=here)[0] == 200


def test_page_without_token_loads_and_holds_no_data(web: Web, seen: Seen) -> None:
    for path in ("/", "/static/main.js", "/static/token.js"):
        status, _, body = web.ask(path, Authorization="")
        assert status == 200
        assert web.token.encode() not in body and seen.url.encode() not in body and b"cifar" not in body


def test_token_is_in_private_files_until_the_end(seen: Seen, tmp_path: Path) -> None:
    with served(seen.url, "--port", "0", XDG_STATE_HOME=str(tmp_path)) as web:
        folder = tmp_path / "hostler" / "ui"
        assert folder.stat().st_mode & 0o777 == 0o700
        page, text = sorted(folder.iterdir())
        assert {path.stat().st_mode & 0o777 for path in (page, text)} == {0o600}
        assert text.read_text().strip() == web.token
        assert f"url={web.address.geturl()}" in page.read_text()
        assert web.ask("/api/overview")[0] == 200
        listed = Path(f"/proc/{web.process.pid}/cmdline").read_bytes()
        assert web.token.encode() not in listed
        web.process.terminate()
        web.process.wait(60)
        assert list(folder.iterdir()) == []


BROWSER = """#!/bin/sh
printf '%s\\n' "$@" > "$OPENED/words"
cp "${1#file://}" "$OPENED/page"
kill -TERM $PPID
"""


def test_browser_is_given_a_file_and_never_the_token(seen: Seen, tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    variables = {"PYTHONPATH": str(SOURCE), "XDG_STATE_HOME": str(tmp_path), "OPENED": str(tmp_path)}
    command = [sys.executable, "-m", "hostler", "ui", "--store", seen.url, "--port", "0"]
    _, text = on_terminal(command, env={**os.environ, **variables, "BROWSER": str(program)})
    address = next(word for word in text.split() if "#token=" in word)
    [word] = (tmp_path / "words").read_text().splitlines()
    assert word.startswith((tmp_path / "hostler" / "ui").as_uri())
    assert address.partition("#token=")[2] not in word
    assert f"url={address}" in (tmp_path / "page").read_text()


def test_token_folder_open_to_others_is_refused(seen: Seen, tmp_path: Path) -> None:
    folder = tmp_path / "hostler" / "ui"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with served(seen.url, "--port", "0", XDG_STATE_HOME=str(tmp_path)) as web:
        assert web.process.wait(60) == 1
        assert web.process.stderr is not None
        assert "other users can write to" in web.process.stderr.read()


def test_token_file_is_made_and_used_again(seen: Seen, tmp_path: Path) -> None:
    file, tokens = tmp_path / "token", set()
    for _ in range(2):
        with served(seen.url, "--port", "0", "--token-file", str(file)) as web:
            assert web.ask("/api/overview")[0] == 200
            tokens.add(web.token)
    assert tokens == {file.read_text().strip()}
    assert file.stat().st_mode & 0o777 == 0o600


def test_token_on_the_command_line_is_refused(seen: Seen) -> None:
    with served(seen.url, "--token", "s3cret-s3cret-s3cret") as web:
        assert web.process.wait(60) == 2
        assert web.process.stderr is not None
        said = web.process.stderr.read()
        assert "--token-file FILE" in said and len(said.splitlines()) == 2 and "s3cret" not in said


def test_requests_of_other_origins_read_nothing(web: Web) -> None:
    own = {"Origin": web.origin, "Sec_Fetch_Site": "same-origin"}
    foreign: list[dict[str, str]] = [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
    ]
    for path in ("/api/overview", "/api/events", "/static/main.js"):
        for headers in foreign:
            assert web.ask(path, **headers)[0] == 403, (path, headers)
    assert web.ask("/api/overview", **own)[0] == 200
    opened = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert web.ask("/", **opened, Sec_Fetch_Dest="document")[0] == 200  # a link, or the local page
    assert web.ask("/", **opened, Sec_Fetch_Dest="iframe")[0] == 403


def test_wide_spans_of_a_query_take_no_memory(seen: Seen) -> None:
    with served(seen.url, "--port", "0") as web:
        web.json("/api/overview")
        before = _peak(web)
        words = ",".join(f"{n}00000-{n + 1}00000" for n in range(160))
        found = web.json(f"/api/curves?sweep=cifar-grid&index={words}&metric=accuracy")
        assert len(found["curves"]) == 34
        assert _peak(web) - before < 50_000  # kB


def _peak(web: Web) -> int:
    lines = Path(f"/proc/{web.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def test_queries_and_bodies_beyond_their_bounds_are_refused(web: Web) -> None:
    assert web.ask("/api/compare?" + "&".join(["id=x"] * 300))[0] == 414
    assert web.ask("/api/compare?id=" + "x" * 20_000)[0] in (400, 414)
    own = {"Origin": web.origin, "Content_Type": "application/json"}
    assert web.ask("/api/stop", "POST", b" " * 3_000_000, **own)[0] == 413


def test_deep_json_is_a_bad_request(web: Web) -> None:
    for depth in (5_000, 200_000):
        status, _, body = web.ask("/api/stop", "POST", b"[" * depth, Origin=web.origin)
        assert (status, json.loads(body)) == (400, {"error": "name the runs"})


def test_streams_of_one_address_are_bounded(seen: Seen) -> None:
    with served(seen.url, "--port", "0") as web:
        headers = {"Host": web.address.netloc, "Authorization": f"Bearer {web.token}"}
        streams = [http.client.HTTPConnection("127.0.0.1", web.address.port, timeout=30) for _ in range(33)]
        answers = []
        for stream in streams:
            stream.request("GET", "/api/events?since=0", headers=headers)
            answer = stream.getresponse()
            answers.append(answer.status)
            if answer.status == 200:
                answer.readline()
        assert answers == [200] * 32 + [429]
        for stream in streams:
            stream.close()


def test_a_rebound_name_is_refused(web: Web) -> None:
    port = web.address.port
    assert web.ask("/api/overview", Host=f"evil.example:{port}")[0] == 421
    assert web.ask("/api/overview", Host=f"localhost:{port}")[0] == 200


def test_every_answer_forbids_foreign_scripts_frames_and_sniffing(web: Web) -> None:
    for path in ("/", "/api/overview", "/static/main.js", "/nowhere"):
        _, headers, _ = web.ask(path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_request_that_acts_must_come_from_the_page_itself(web: Web, seen: Seen) -> None:
    job = sweeps.load(seen.store, "cifar-grid")
    body = {"runs": [job.run_id(26)]}
    own = {"Origin": web.origin, "Content_Type": "application/json"}
    refused: list[dict[str, str]] = [
        {},
        {**own, "Origin": "https://evil.example"},
        {**own, "Origin": "http://127.0.0.1:1"},
        {**own, "Origin": "null"},
        {**own, "Sec_Fetch_Site": "cross-site"},
        {**own, "Sec_Fetch_Site": "same-site"},
    ]
    for headers in refused:
        assert web.ask("/api/stop", "POST", body, **headers)[0] == 403
    assert web.ask("/api/stop", "POST", body, **own, Authorization="Bearer guess")[0] == 401
    assert web.ask("/api/stop", "GET")[0] == 405
    assert control.state_of(seen.store, RunKey("cifar-grid", job.run_id(26))).stop is None
    status, _, answer = web.ask("/api/stop", "POST", body, **own)
    assert status == 200
    assert json.loads(answer)["results"][0]["said"] == "asked to save and stop"
    assert control.state_of(seen.store, RunKey("cifar-grid", job.run_id(26))).stop == "person"
    assert web.ask("/api/stop", "POST", {"rums": 1}, **own)[0] == 400
    assert json.loads(web.ask("/api/stop", "POST", {"runs": ["../../x", HOSTILE]}, **own)[2]) == {
        "results": []
    }


def test_values_that_json_cannot_hold_are_text(web: Web) -> None:
    found = web.json("/api/runs?sweep=odd-values")
    assert found["metrics"]["accuracy"]["each"] == [0.25, "Infinity", "-Infinity", None]
    assert found["params"]["x"]["each"][:3] == [1, "text", "NaN"]
    assert found["fields"]["state"]["each"] == ["done", "done", "done", "failed"]


def test_table_comes_in_lines_with_all_page_fields(web: Web) -> None:
    status, headers, body = web.ask("/api/table?sweep=cifar-grid")
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines[-1]["last"] and lines[0]["total"] == sum(line["count"] for line in lines) == 36
    page = web.ask("/")[2].decode()
    for path in [word.split('"')[0] for word in page.split('="/static/')[1:]]:
        assert web.ask(f"/static/{path}")[0] == 200, path


def test_what_is_not_there_is_said(web: Web) -> None:
    for path in (
        "/api/runs?sweep=none",
        "/api/table?sweep=none",
        "/api/run?id=none",
        "/api/log?id=none",
        "/api/curves?sweep=../../etc",
    ):
        status, headers, body = web.ask(path)
        assert status == 404, path
        assert headers["content-type"] == "application/json"
        assert json.loads(body)["error"]
    assert web.ask("/api/curves?sweep=cifar-grid&index=1-x&metric=accuracy")[0] == 400
    assert web.ask("/api/curves?sweep=cifar-grid&index=1&metric=accuracy&most=x")[0] == 400
    assert web.ask("/api/events?since=x")[0] == 400
    assert web.ask("/static/../app.py")[0] == 404
    assert web.ask("/static/%2e%2e/app.py")[0] == 404


def test_the_log_goes_on_from_where_it_was(web: Web, seen: Seen) -> None:
    job = sweeps.load(seen.store, "cifar-grid")
    run = job.run_id(7)
    first = web.json(f"/api/log?id={run}")
    assert first["text"].endswith("epoch 40 of 40\n")
    key = layout.log_fragment(run, 1, 0, 1)
    seen.store.put(key, b"one more\n")
    more = web.json(f"/api/log?id={run}&after={first['after']}")
    assert more == {"text": "one more\n", "after": key}
    assert web.json(f"/api/log?id={run}&after={more['after']}")["text"] == ""
    found = web.json(f"/api/log?id={run}&search=ONE")
    assert [line["text"] for line in found["lines"]] == ["one more"]
    assert found["lines"][0]["line"] == 41


def test_a_curve_of_a_million_points_is_answered_with_few(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("long", [{"lr": 1}])
    seen.claim(job, 0)
    points = [Point(step, 1.0, {"accuracy": 1 / (step + 1)}) for step in range(1_000_000)]
    seen.end(job, 0, "done", seen.curve(job, 0, points)[-2:])
    with served(seen.url) as web:
        found = web.json("/api/curves?sweep=long&index=0&metric=accuracy&most=500")
    [curve] = found["curves"].values()
    assert curve["points"] == 1_000_000
    assert len(curve["x"]) <= 520
    assert (curve["x"][0], curve["x"][-1]) == (0, 999_999)


def test_changes_stream_until_the_process_ends(seen: Seen) -> None:
    with served(seen.url) as web:
        version = web.json("/api/overview")["version"]
        made = http.client.HTTPConnection("127.0.0.1", web.address.port, timeout=20)
        made.request(
            "GET",
            f"/api/events?since={version}",
            headers={"Host": web.address.netloc, "Authorization": f"Bearer {web.token}"},
        )
        stream = made.getresponse()
        assert stream.getheader("content-type", "").startswith("text/event-stream")
        job = sweeps.load(seen.store, "cifar-grid")
        stream.readline()
        seen.beat(job, 29, int(time.time()), 99, accuracy=0.5)
        line = b""
        while not line.startswith(b"data: "):
            line = stream.readline()
        changed = json.loads(line[6:])
        assert any(row["id"] == job.run_id(29) and row["step"] == 99 for row in changed["rows"])
        assert (seen.folder / "interest.json").exists()
        begun = time.monotonic()
        web.process.send_signal(signal.SIGINT)
        assert web.process.wait(60) == 0
        assert time.monotonic() - begun < 10
        assert web.process.stderr is not None
        assert web.process.stderr.read() == ""
        assert not (seen.folder / "interest.json").exists()


def test_foreign_address_is_refused() -> None:
    with pytest.raises(MachineError, match="give --host an address of this machine"):
        _listen(ListenAddress("192.0.2.1"))


def test_taken_port_and_unknown_store_are_one_line(seen: Seen, web: Web) -> None:
    command = [sys.executable, "-m", "hostler", "ui", "--no-browser", "--port", str(web.address.port)]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [*command, "--store", seen.url], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1" in done.stderr and "another --port" in done.stderr
    assert "Traceback" not in done.stderr
