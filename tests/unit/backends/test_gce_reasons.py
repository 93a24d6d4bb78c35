"""What Compute Engine's refusals mean, row by row."""

from __future__ import annotations

import pytest

from hostler.backends.capacity import AGAIN, REGION, STOP, ZONE
from hostler.backends.gce.reasons import of_call, reason


@pytest.mark.parametrize(
    ("code", "message", "then"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", "", ZONE),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", ZONE),
        ("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 1.0 globally.", STOP),
        ("QUOTA_EXCEEDED", "Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 1.0 in region x.", REGION),
        ("RESOURCE_NOT_READY", "", AGAIN),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", "", AGAIN),
        ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", AGAIN),
        ("INTERNAL_ERROR", "", AGAIN),
        ("PERMISSIONS_ERROR", "", STOP),
        ("INVALID_USAGE", "", STOP),
        ("SOMETHING_NEW", "", STOP),
    ],
)
def test_an_error_of_an_operation_says_what_follows(code: str, message: str, then: str) -> None:
    assert reason(code, message).then == then


@pytest.mark.parametrize(
    ("status", "code", "message", "then", "words"),
    [
        (403, "accessNotConfigured", "", STOP, "not enabled"),
        (403, "forbidden", "Required 'compute.x' permission", STOP, "may not do that"),
        (403, "rateLimitExceeded", "", AGAIN, "asks to wait"),
        (403, "quotaExceeded", "Quota 'CPUS' exceeded", REGION, "quota of the region"),
        (401, "authError", "", STOP, "credentials"),
        (404, "notFound", "The resource 'projects/nope' was not found", STOP, "project does not exist"),
        (404, "notFound", "The resource 'projects/p/zones/x' was not found", STOP, "did not find it"),
        (409, "alreadyExists", "", STOP, "taken already"),
        (429, "", "", AGAIN, "asks to wait"),
        (503, "", "", AGAIN, "asks to wait"),
        (500, "", "<html>", AGAIN, "asks to wait"),
        (400, "invalid", "Invalid value for field", STOP, "does not accept the request"),
        (400, "resourceInUseByAnotherResource", "", AGAIN, "still in use"),
    ],
)
def test_a_refused_call_says_what_follows(
    status: int, code: str, message: str, then: str, words: str
) -> None:
    found = of_call(status, code, message)
    assert found.then == then and words in found.words


def test_who_can_do_something_is_told_what() -> None:
    assert "gcloud services enable" in of_call(403, "accessNotConfigured", "").hint
    assert "application-default login" in of_call(401, "authError", "").hint
    assert "`project`" in of_call(404, "notFound", "The resource 'projects/nope' was not found").hint
