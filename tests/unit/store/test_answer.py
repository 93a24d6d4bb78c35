from __future__ import annotations

import pytest

from hostler.errors import StoreError, StoreUnreachable
from hostler.store import NotFound
from hostler.store.answer import Answer, explain, read_answer

STATUS = (
    "Generic S3 error: Error performing PUT http://h/b/k in 1ms - Server returned non-2xx status code: {}: "
)


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        ("FileNotFoundError", "Object at location k not found: <Code>NoSuchKey</Code>", Answer.ABSENT),
        ("FileNotFoundError", "not found: <Code>NoSuchBucket</Code>", Answer.NO_BUCKET),
        ("GenericError", STATUS.format("404 Not Found") + "<Code>NoSuchBucket</Code>", Answer.NO_BUCKET),
        ("AlreadyExistsError", STATUS.format("409 Conflict"), Answer.TAKEN),
        ("AlreadyExistsError", STATUS.format("412 Precondition Failed"), Answer.TAKEN),
        ("PermissionDeniedError", STATUS.format("403 Forbidden"), Answer.DENIED),
        ("UnauthenticatedError", STATUS.format("401 Unauthorized"), Answer.STALE),
        ("GenericError", STATUS.format("401 Unauthorized"), Answer.STALE),
        ("GenericError", STATUS.format("403 Forbidden"), Answer.DENIED),
        ("GenericError", STATUS.format("500 Internal Server Error"), Answer.BUSY),
        ("GenericError", STATUS.format("503 Service Unavailable"), Answer.BUSY),
        ("GenericError", STATUS.format("429 Too Many Requests"), Answer.BUSY),
        ("GenericError", STATUS.format("400 Bad Request"), Answer.REFUSED),
        ("GenericError", STATUS.format("416 Range Not Satisfiable"), Answer.NOTHING_THERE),
        ("GenericError", "Wanted range starting at 10, but object was only 10 bytes", Answer.NOTHING_THERE),
        ("GenericError", "HTTP error: error sending request", Answer.BUSY),
        ("GenericError", "Received redirect without LOCATION, incorrectly configured region", Answer.REFUSED),
        ("GenericError", "PUT http://169.254.169.254/latest/api/token - error", Answer.NO_CREDENTIALS),
        ("GenericError", "GET http://169.254.169.254/token - status code: 503 x", Answer.BUSY),
        (
            "GenericError",
            "GET http://169.254.169.254/token - status code: 404 x",
            Answer.NO_CREDENTIALS,
        ),
    ],
)
def test_an_error_of_the_driver_is_understood(kind: str, text: str, answer: Answer) -> None:
    assert read_answer(kind, text) is answer


def test_each_answer_becomes_an_error_a_person_can_act_on() -> None:
    for answer in Answer:
        error = explain(
            answer, "s3://b/p", "k", STATUS.format("400 Bad") + "<Code>C</Code><Message>M\n m</Message>"
        )
        assert "s3://b/p" in error.message and "\n" not in error.message
        assert isinstance(error, NotFound) is (answer is Answer.ABSENT)
        assert isinstance(error, StoreUnreachable) is (answer is Answer.BUSY)
        assert error.hint or answer is Answer.ABSENT
    assert "C: M m" in str(explain(Answer.REFUSED, "s3://b", "k", "<Code>C</Code><Message>M\n m</Message>"))
    assert type(explain(Answer.DENIED, "s3://b", "", "x")) is StoreError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Generic S3 error: Error performing list request: Error performing GET http://h:9/b?prefix=x%2F"
            + "z" * 300
            + " in 144ms, after 2 retries, retry_timeout: 5s - HTTP error: error sending request"
            '\n\nDebug source:\nOs {\n code: 111,\n kind: Refused,\n message: "Connection refused",\n}',
            "GET http://h:9/b: Connection refused",
        ),
        (STATUS.format("503 Service Unavailable"), "503 Service Unavailable"),
        ("an error of no known form", "an error of no known form"),
    ],
)
def test_what_the_driver_says_is_told_from_its_beginning(text: str, said: str) -> None:
    message = explain(Answer.BUSY, "s3://b/x", "", text).message
    assert message.startswith("s3://b/x does not answer: ") and said in message and "Generic" not in message
