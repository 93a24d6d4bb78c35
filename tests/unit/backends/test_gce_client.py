"""The client of Compute Engine against a small server that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.errors import CloudUnavailable

Answer = tuple[int, Any]  # a status and a body; status 0 is a connection that breaks


class Google:
    """Answers in the order in which they were put here; what was asked is in `seen`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[tuple[str, str, dict[str, list[str]], Any]] = []
        self.waits: list[float] = []
        google = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                asked = urlsplit(self.path)
                google.seen.append((self.command, asked.path, parse_qs(asked.query), body))
                status, told = google.answers.pop(0)
                if not status:
                    self.close_connection = True
                    return
                data = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _any

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def client(self) -> GceClient:
        now = [0.0]

        def pause(seconds: float) -> None:
            self.waits.append(seconds)
            now[0] += seconds

        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return GceClient("p", url, lambda: "t", pause, lambda: now[0])


@pytest.fixture
def google() -> Iterator[Google]:
    made = Google()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def operation(status: str = "DONE", **more: Any) -> dict[str, Any]:
    region = "https://www.googleapis.com/compute/v1/projects/p/regions/r"
    return {"name": "o", "status": status, "region": region, "operationType": "insert", **more}


def refusal(status: int, reason: str) -> Answer:
    told = {"code": status, "message": "no", "errors": [{"reason": reason, "message": "no"}]}
    return status, {"error": told}


def test_a_success_is_asked_for_once(google: Google) -> None:
    google.answers = [(200, {"name": "x"})]
    assert google.client().get("global/x") == {"name": "x"}
    assert len(google.seen) == 1 and google.waits == []


def test_change_with_a_lost_answer_is_repeated_under_its_id(google: Google) -> None:
    google.answers = [(0, None), (200, operation("RUNNING")), (200, operation())]
    google.client().insert("regions/r/instanceGroupManagers", {"name": "g"})
    first, second, waited = google.seen
    assert first[2]["requestId"] == second[2]["requestId"]
    assert waited[1].endswith("/projects/p/regions/r/operations/o/wait")


def test_two_changes_have_two_ids(google: Google) -> None:
    google.answers = [(200, operation()), (200, operation())]
    client = google.client()
    client.insert("a", {})
    client.insert("a", {})
    assert google.seen[0][2]["requestId"] != google.seen[1][2]["requestId"]


@pytest.mark.parametrize(
    "answer", [refusal(429, ""), refusal(503, "backendError"), refusal(403, "rateLimitExceeded")]
)
def test_who_asks_to_wait_is_asked_again(google: Google, answer: Answer) -> None:
    google.answers = [answer, answer, (200, {"ok": True})]
    assert google.client().get("x") == {"ok": True}
    assert google.waits == [0.5, 1.0]


def test_service_that_stays_busy_is_given_up_after_a_bound(google: Google) -> None:
    google.answers = [refusal(503, "backendError")] * 99
    with pytest.raises(GceRefusal, match="failed for a moment"):
        google.client().get("x")
    assert 60 < sum(google.waits) <= 120


def test_a_service_that_does_not_answer_is_told_as_that(google: Google) -> None:
    google.answers = [(0, None)] * 99
    with pytest.raises(CloudUnavailable, match="does not answer"):
        google.client().get("x")


def test_a_refusal_is_raised_at_once_with_words(google: Google) -> None:
    google.answers = [refusal(403, "accessNotConfigured")]
    with pytest.raises(GceRefusal, match=r"^the Compute Engine API is not enabled .* \(GET x\)") as error:
        google.client().get("x")
    assert error.value.status == 403 and google.waits == []


def test_refusal_of_several_lines_is_told_in_one(google: Google) -> None:
    google.answers = [(400, {"error": {"code": 400, "message": "no:\n  field x\r\n  field y"}})]
    with pytest.raises(GceRefusal) as error:
        google.client().get("x")
    assert "no: field x field y (GET x)" in error.value.message


def test_the_error_of_a_finished_operation_is_raised(google: Google) -> None:
    error = {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none"}]}
    google.answers = [(200, operation(error=error))]
    with pytest.raises(GceRefusal, match="the zone has none left"):
        google.client().insert("x", {})


def test_pages_are_read_to_the_end(google: Google) -> None:
    first, second = ({"items": [{"name": name}]} for name in "ab")
    google.answers = [(200, {**first, "nextPageToken": "two"}), (200, second)]
    assert [one["name"] for one in google.client().list("global/x")] == ["a", "b"]
    assert google.seen[1][2]["pageToken"] == ["two"]


def test_fields_of_one_name_may_have_either_form(google: Google) -> None:
    group = {
        "name": "g",
        "targetSize": 2,
        "versions": [{"targetSize": {"calculated": 2}}],
        "distributionPolicy": {"zones": [{"zone": "x/zones/a"}]},
        "tags": {"items": ["ssh"]},
        "zones": ["x/zones/a"],
    }
    google.answers = [(200, {"items": [group]})]
    assert list(google.client().list("global/x")) == [group]


@pytest.mark.parametrize("answer", [[], "x", {"items": 3}, {"items": [{"id": 1}]}, {"items": {"a": []}}])
def test_json_of_another_service_is_said_in_a_line(google: Google, answer: Any) -> None:
    google.answers = [(200, answer)] * 20
    with pytest.raises(CloudUnavailable, match="is not Compute Engine"):
        list(google.client().list("global/x"))


def test_what_is_gone_already_is_as_good_as_deleted(google: Google) -> None:
    google.answers = [refusal(404, "notFound"), refusal(404, "notFound")]
    assert google.client().delete("zones/z/instances/i") is False
    assert google.client().find("zones/z/instances/i") is None


@pytest.mark.parametrize("token", ["again", "\ud800", "ä"])
def test_pages_that_never_end_or_have_odd_names_are_refused(google: Google, token: Any) -> None:
    google.answers = [(200, {"items": [], "nextPageToken": token})] * 3
    with pytest.raises(CloudUnavailable) as said:
        list(google.client().list("global/images"))
    assert "is not" in said.value.message and len(google.seen) <= 2
