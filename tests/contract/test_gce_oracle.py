"""Google's description of its API says no to what is wrong: else it would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

import servers
from gce_api import ZONE, properties

gce_oracle = servers.library("gce_oracle")

INSERT = f"/compute/v1/projects/p/zones/{ZONE}/instances"


def body(**change: Any) -> dict[str, Any]:
    return {**properties(), "name": "one", **change}


def test_a_right_request_is_named() -> None:
    assert gce_oracle.check_request("POST", INSERT, {"requestId": "x"}, body()) == "instances.insert"
    family = "/compute/v1/projects/p/global/images/family/f"
    assert gce_oracle.check_request("GET", family, {}, None) == "images.getFromFamily"
    resize = "/compute/v1/projects/p/regions/us-east1/instanceGroupManagers/g/resize"
    assert (
        gce_oracle.check_request("POST", resize, {"size": "3"}, None) == "regionInstanceGroupManagers.resize"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "blue"}, "no field colour"),
        ({"scheduling": {"provisioningModel": "CHEAP"}}, "not one of"),
        ({"labels": ["a"]}, "no object"),
        ({"canIpForward": "yes"}, "no boolean"),
        ({"scheduling": {"maxRunDuration": {"seconds": 30}}}, "no string"),
        ({"disks": [{"diskSizeGb": "20GB"}]}, "no int64"),
        ({"disks": {"boot": True}}, "no list"),
        ({"fingerprint": 3}, "no string"),
        ({"name": "Upper"}, "name"),
    ],
)
def test_a_wrong_body_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        gce_oracle.check_request("POST", INSERT, {}, body(**change))


@pytest.mark.parametrize(
    ("method", "path", "query", "words"),
    [
        ("PUT", INSERT, {}, "Google has no"),
        ("GET", "/compute/v1/projects/p/zones", {"colour": "blue"}, "no parameter colour"),
        ("GET", "/compute/v1/projects/p/zones", {"maxResults": "many"}, "maxResults"),
        ("POST", "/compute/v1/projects/p/regions/r-1/instanceGroupManagers/g/resize", {}, "needs"),
    ],
)
def test_a_wrong_line_is_refused(method: str, path: str, query: dict[str, str], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        gce_oracle.check_request(method, path, query, None)


def test_a_wrong_answer_is_refused() -> None:
    where = ("GET", f"{INSERT}/one")
    gce_oracle.check_answer(*where, 200, {"kind": "compute#instance", "status": "RUNNING"})
    for wrong in ({"status": "ON"}, {"id": 7}, {"colour": "blue"}):
        with pytest.raises(AssertionError):
            gce_oracle.check_answer(*where, 200, wrong)
    with pytest.raises(AssertionError):
        gce_oracle.check_answer(*where, 404, {"error": {"code": 400, "message": "no", "errors": []}})
