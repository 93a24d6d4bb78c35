"""Texts of the stand-in that a person gets to read are those of a real Kubernetes 1.36, word for word."""

from __future__ import annotations

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Event, Namespace

from kube_world import Manifest, StandIn, job, pod, script, until

pytestmark = pytest.mark.usefixtures("root")


def told(stand_in: StandIn, name: str, reason: str) -> str:
    """The message of an event about an object, once it is there."""

    def found() -> list[str]:
        known = stand_in.client.list(Event, fields={"involvedObject.name": name})
        return [str(one.message) for one in known if one.reason == reason]

    until(lambda: bool(found()), f"an event {reason}", found)
    return found()[0]


def message(error: ApiError) -> str:
    return error.status.message or ""


def test_pods_over_the_quota_are_told_with_its_amounts(stand_in: StandIn) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    stand_in.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    stand_in.create(job("while true; do sleep 0.05; done", count=2))
    said = told(stand_in, "j", "FailedCreate")
    head, _, rest = said.partition('"')
    name, _, tail = rest.partition('"')
    assert (head, name[:2]) == ("Error creating: pods ", "j-")
    assert tail == " is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"


def test_missing_account_is_told_when_a_pod_is_made(stand_in: StandIn) -> None:
    refused = stand_in.refused(pod("true", name="sa", serviceAccountName="nosuch"))
    assert refused.status.code == 403
    account = 'serviceaccount "nosuch" not found'
    assert message(refused) == (
        f'pods "sa" is forbidden: error looking up service account default/nosuch: {account}'
    )


def test_missing_secret_of_a_volume_is_told_in_an_event(stand_in: StandIn) -> None:
    stand_in.create(pod("true", volumes=[{"name": "v", "secret": {"secretName": "nosuch"}}]))
    assert told(stand_in, "p", "FailedMount") == (
        'MountVolume.SetUp failed for volume "v" : secret "nosuch" not found'
    )
    (one,) = stand_in.pod("p")["status"]["containerStatuses"]
    assert one["state"]["waiting"] == {"reason": "ContainerCreating"}


def test_missing_secret_of_a_variable_is_told_by_its_container(stand_in: StandIn) -> None:
    source = {"secretKeyRef": {"name": "nosuch", "key": "k"}}
    stand_in.create(pod(script("true", env=[{"name": "A", "valueFrom": source}])))
    expected = {"reason": "CreateContainerConfigError", "message": 'secret "nosuch" not found'}

    def waiting() -> Manifest:
        found = stand_in.pod("p")["status"].get("containerStatuses") or [{"state": {}}]
        held: Manifest = found[0]["state"].get("waiting") or {}
        return held

    until(lambda: waiting() == expected, "the reason", waiting)


def test_deadline_of_a_job_is_told_by_its_conditions(stand_in: StandIn) -> None:
    stand_in.create(job("while true; do sleep 0.05; done", activeDeadlineSeconds=1))
    assert stand_in.ended() == ("Failed", "DeadlineExceeded")
    known = {one["type"]: one for one in stand_in.job()["status"]["conditions"]}
    for kind in ("FailureTarget", "Failed"):
        assert known[kind]["reason"] == "DeadlineExceeded"
        assert known[kind]["message"] == "Job was active longer than specified deadline"


def test_restricted_namespace_lists_all_that_a_pod_lacks(stand_in: StandIn) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    stand_in.client.patch(Namespace, "default", {"metadata": {"labels": label}})
    assert message(stand_in.refused(pod("true"))) == (
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
        '(container "main" must set securityContext.allowPrivilegeEscalation=false), unrestricted '
        'capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot '
        '!= true (pod or container "main" must set securityContext.runAsNonRoot=true), seccompProfile (pod '
        'or container "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )


def test_claim_that_is_not_there_is_told_by_the_scheduler(stand_in: StandIn) -> None:
    stand_in.create(pod("true", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "nosuch"}}]))
    expected = '0/3 nodes are available: persistentvolumeclaim "nosuch" not found. not found'
    assert told(stand_in, "p", "FailedScheduling") == expected
    (condition,) = stand_in.pod("p")["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("Unschedulable", expected)


def test_selector_that_no_node_has_is_told_by_the_scheduler(stand_in: StandIn) -> None:
    stand_in.create(pod("true", nodeSelector={"pool": "none"}))
    assert told(stand_in, "p", "FailedScheduling") == (
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. no new claims to "
        "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_amount_that_no_node_has_is_told_by_the_scheduler(stand_in: StandIn) -> None:
    stand_in.create(pod(script("true", resources={"requests": {"cpu": "900"}})))
    assert told(stand_in, "p", "FailedScheduling") == (
        "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes "
        "are available: 3 Preemption is not helpful for scheduling."
    )
