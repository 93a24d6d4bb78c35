"""Indexed Jobs: each rule once, on the stand-in, or on a real cluster with HOSTLER_TEST_KUBECONFIG."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from lightkube.resources.batch_v1 import Job
from lightkube.types import CascadeType, PatchType

import kube_world
from kube_world import Kube, code, job, reasons, script, until

SLEEP = "trap 'exit 143' TERM; echo up; while true; do sleep 0.05; done"
GRACE = {"terminationGracePeriodSeconds": 60}
INDEX = "test $JOB_COMPLETION_INDEX = 0"
DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def rules(*given: dict[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(given)}}


def on_exit(action: str, *values: int, operator: str = "In") -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}


def evict(kube: Kube, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{kube.namespace}/pods/{pod}/eviction"
    kube.kubectl("create", "--raw", path, "-f", "-", given=yaml.safe_dump(body))


def test_every_index_runs_once_and_knows_its_number_four_ways(kube: Kube) -> None:
    kube.create(job("echo index=$JOB_COMPLETION_INDEX host=$(hostname)", count=3))
    assert kube.ended() == ("Complete", "CompletionsReached")
    pods = kube.pods()
    assert len(pods) == 3
    for pod in pods:
        meta = pod["metadata"]
        index = meta["labels"]["batch.kubernetes.io/job-completion-index"]
        assert meta["annotations"]["batch.kubernetes.io/job-completion-index"] == index
        assert meta["name"].startswith(f"j-{index}-") and len(meta["name"]) == len(f"j-{index}-xxxxx")
        assert kube.log(meta["name"]) == f"index={index} host=j-{index}\n"
    status = kube.job()["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")
    assert reasons(kube.job()).keys() == {"SuccessCriteriaMet", "Complete"}


def test_failed_index_is_replaced_until_exit_0_and_others_stay(kube: Kube) -> None:
    once = f"{INDEX} || exit 0; test $FAILED -ge 2 || exit 7"
    failures = "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"
    env = [{"name": "FAILED", "valueFrom": {"fieldRef": {"fieldPath": failures}}}]
    kube.create(job(script(once, env=env), count=2, backoffLimitPerIndex=5))
    assert kube.ended() == ("Complete", "CompletionsReached")
    assert [code(pod) for pod in kube.pods(index=0)].count(7) == 2
    assert [code(pod) for pod in kube.pods(index=1)] == [0]
    assert kube.job()["status"]["failed"] == 2


def test_parallelism_bounds_how_many_run_at_once(kube: Kube) -> None:
    kube.create(job(SLEEP, count=3, parallelism=1))
    (first,) = kube.running(1)
    assert first.startswith("j-0-") and len(kube.pods()) == 1
    assert kube.job()["status"]["active"] == 1


def test_index_over_its_limit_fails_alone_then_fails_the_job(
    kube: Kube,
) -> None:
    kube.create(job(f"{INDEX} && exit 3; exit 0", count=3, backoffLimitPerIndex=1))
    assert kube.ended() == ("Failed", "FailedIndexes")
    status = kube.job()["status"]
    assert (status["failedIndexes"], status["completedIndexes"], status["failed"]) == ("0", "1,2", 2)
    assert len(kube.pods(index=0)) == 2


def test_more_failed_indexes_than_allowed_end_the_job(kube: Kube) -> None:
    text = f"{INDEX} && exit 3; {SLEEP}"
    kube.create(job(text, count=2, backoffLimitPerIndex=0, maxFailedIndexes=0))
    assert kube.ended() == ("Failed", "MaxFailedIndexesExceeded")
    assert kube.job()["status"].get("active", 0) == 0


def test_the_back_off_limit_of_the_job_counts_all_failures(kube: Kube) -> None:
    kube.create(job("exit 5", backoffLimit=1))
    assert kube.ended() == ("Failed", "BackoffLimitExceeded")
    assert [code(pod) for pod in kube.pods()] == [5, 5]


def test_fail_job_ends_the_job_and_names_pod_and_rule(kube: Kube) -> None:
    policy = rules(on_exit("FailJob", 42), DISRUPTED)
    kube.create(job(f"{INDEX} && exit 42; {SLEEP}", count=2, backoffLimitPerIndex=9, **policy))
    assert kube.ended() == ("Failed", "PodFailurePolicy")
    assert reasons(kube.job()).keys() == {"FailureTarget", "Failed"}
    said = next(one["message"] for one in kube.job()["status"]["conditions"] if one["type"] == "Failed")
    assert f"Container main for pod {kube.namespace}/j-0-" in said
    assert said.endswith("failed with exit code 42 matching FailJob rule at index 0")


def test_fail_index_gives_an_index_up_without_another_try(kube: Kube) -> None:
    policy = rules(on_exit("FailIndex", 43), DISRUPTED)
    kube.create(job(f"{INDEX} && exit 43; exit 0", count=2, backoffLimitPerIndex=9, **policy))
    assert kube.ended() == ("Failed", "FailedIndexes")
    assert len(kube.pods(index=0)) == 1 and kube.job()["status"]["failedIndexes"] == "0"


def test_the_first_rule_that_fits_counts(kube: Kube) -> None:
    policy = rules(on_exit("Count", 44), on_exit("FailJob", 0, 1, operator="NotIn"))
    kube.create(job("exit 44", backoffLimitPerIndex=1, **policy))
    assert kube.ended() == ("Failed", "FailedIndexes")
    assert len(kube.pods()) == 2


@pytest.mark.needs("kubectl")
def test_evicted_pod_is_marked_and_replaced_without_using_the_limit(kube: Kube) -> None:
    text = "trap 'echo bye; exit 9' TERM; echo up; while true; do sleep 0.05; done"
    kube.create(job(text, backoffLimitPerIndex=0, pod=GRACE, **rules(DISRUPTED)))
    (first,) = kube.running(1)
    kube.said(first, "up")
    evict(kube, first)
    until(lambda: bool(set(kube.running(1)) - {first}), "a replacement", kube.pods)
    (second,) = kube.running(1)
    assert second.startswith("j-0-")
    assert kube.job()["status"].get("failed", 0) == 0
    assert kube.job()["status"]["failedIndexes"] == ""


@pytest.mark.needs("kubectl")
def test_an_evicted_pod_that_exits_0_has_completed_its_index(kube: Kube) -> None:
    text = "trap 'exit 0' TERM; echo up; while true; do sleep 0.05; done"
    kube.create(job(text, backoffLimitPerIndex=3, pod=GRACE, **rules(DISRUPTED)))
    (first,) = kube.running(1)
    kube.said(first, "up")
    evict(kube, first)
    assert kube.ended() == ("Complete", "CompletionsReached")


def test_replacement_policy_failed_replaces_nothing_before_it_has_ended(kube: Kube) -> None:
    stubborn = "trap '' TERM; echo up; while true; do sleep 0.05; done"
    pod = {"terminationGracePeriodSeconds": 4}
    kube.create(job(stubborn, backoffLimit=5, podReplacementPolicy="Failed", pod=pod))
    (first,) = kube.running(1)
    kube.said(first, "up")
    kube.kubectl("delete", "pod", first, "--wait=false")
    until(lambda: kube.job()["status"].get("terminating") == 1, "a terminating pod", kube.job)
    assert len(kube.pods()) == 1
    until(lambda: bool(set(kube.running(1)) - {first}), "a replacement", kube.pods)


def test_deleted_pod_is_replaced_immediately_without_a_replacement_policy(kube: Kube) -> None:
    stubborn = "trap '' TERM; echo up; while true; do sleep 0.05; done"
    kube.create(job(stubborn, backoffLimit=5, pod=GRACE))
    (first,) = kube.running(1)
    kube.said(first, "up")
    kube.kubectl("delete", "pod", first, "--wait=false")
    until(lambda: len(kube.pods()) == 2, "both of them", kube.pods)


def test_deadline_ends_the_job_and_its_unscheduled_pods(kube: Kube) -> None:
    big = script("true", resources={"requests": {"cpu": "900"}})
    kube.create(job(SLEEP, activeDeadlineSeconds=2))
    kube.create(job(big, name="big", activeDeadlineSeconds=2))
    assert kube.ended() == ("Failed", "DeadlineExceeded")
    assert kube.ended("big") == ("Failed", "DeadlineExceeded")
    until(lambda: not kube.job("big")["status"].get("active"), "nothing active")


def test_finished_job_goes_with_its_pods_after_its_ttl(kube: Kube) -> None:
    kube.create(job("true", ttlSecondsAfterFinished=1))
    until(lambda: not list(kube.client.list(Job)), "the Job's end")
    until(lambda: not kube.pods(), "the pods' end", kube.pods)


def test_suspended_job_has_pods_only_while_it_is_resumed(kube: Kube) -> None:
    kube.create(job(SLEEP, suspend=True))
    until(lambda: reasons(kube.job()).get("Suspended") == "JobSuspended", "a suspended Job", kube.job)
    assert kube.pods() == [] and "startTime" not in kube.job()["status"]
    kube.client.patch(Job, "j", {"spec": {"suspend": False}}, patch_type=PatchType.MERGE)
    kube.running(1)
    assert "Suspended" not in reasons(kube.job())
    kube.client.patch(Job, "j", {"spec": {"suspend": True}}, patch_type=PatchType.MERGE)
    until(lambda: not kube.pods(), "the pods' end", kube.pods)
    assert kube.job()["status"].get("failed", 0) == 0


def test_a_suspended_job_may_be_told_where_to_run(kube: Kube) -> None:
    kube.create(job(SLEEP, suspend=True))
    where = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "b"}}}}}
    kube.client.patch(Job, "j", where, patch_type=PatchType.MERGE)
    assert kube.job()["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "b"}


def test_indexed_job_resizes_when_completions_and_parallelism_change_together(kube: Kube) -> None:
    kube.create(job(SLEEP, count=2))
    kube.running(2)
    kube.client.patch(Job, "j", {"spec": {"completions": 3, "parallelism": 3}}, patch_type=PatchType.MERGE)
    assert [name.split("-")[1] for name in kube.running(3)] == ["0", "1", "2"]
    kube.client.patch(Job, "j", {"spec": {"completions": 1, "parallelism": 1}}, patch_type=PatchType.MERGE)
    until(lambda: len(kube.pods()) == 1, "one pod", kube.pods)
    assert kube.running(1)[0].startswith("j-0-")
    assert kube.job()["status"].get("failed", 0) == 0


def test_ready_and_active_pods_are_counted(kube: Kube) -> None:
    kube.create(job(SLEEP, count=2))
    kube.running(2)
    until(lambda: kube.job()["status"].get("ready") == 2, "two ready pods", kube.job)
    assert kube.job()["status"]["active"] == 2


def test_pods_belong_to_their_job_and_go_with_it(kube: Kube) -> None:
    kube.create(job(SLEEP, count=2))
    kube.running(2)
    (owner,) = kube.pods()[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", kube.job()["metadata"]["uid"], True)
    kube.delete(cascade=CascadeType.BACKGROUND)
    until(lambda: not kube.pods(), "the pods' end", kube.pods)


def test_foreground_deletion_keeps_the_job_until_its_pods_are_gone(kube: Kube) -> None:
    stubborn = "trap '' TERM; echo up; while true; do sleep 0.05; done"
    kube.create(job(stubborn, pod={"terminationGracePeriodSeconds": 4}))
    (name,) = kube.running(1)
    kube.said(name, "up")
    kube.delete(cascade=CascadeType.FOREGROUND)
    assert kube.job()["metadata"]["finalizers"] == ["foregroundDeletion"]
    until(lambda: not list(kube.client.list(Job)), "the Job's end")
    assert kube.pods() == []


@pytest.mark.parametrize("cascade", [CascadeType.ORPHAN, None])
def test_job_deleted_without_propagation_leaves_its_pods_behind(
    kube: Kube, cascade: CascadeType | None
) -> None:
    kube.create(job(SLEEP))
    (name,) = kube.running(1)
    kube.delete(cascade=cascade)
    until(lambda: not list(kube.client.list(Job)), "the Job's end")
    until(lambda: "ownerReferences" not in kube.pod(name)["metadata"], "an orphan", lambda: kube.pod(name))
    assert kube.pod(name)["status"]["phase"] == "Running"


def test_the_template_of_a_job_cannot_be_changed(kube: Kube) -> None:
    kube.create(job(SLEEP))
    change = {"spec": {"template": {"spec": {"containers": [script("echo other")]}}}}
    with pytest.raises(kube_world.ApiError, match="field is immutable") as caught:
        kube.client.patch(Job, "j", change, patch_type=PatchType.MERGE)
    status = caught.value.status
    assert (status.code, status.reason) == (422, "Invalid")
    assert status.message.startswith('Job.batch "j" is invalid: spec.template: Invalid value: ')


@pytest.mark.needs("kubectl")
def test_containers_restart_in_their_pod_with_restart_policy_on_failure(kube: Kube) -> None:
    once = "test -e /data/there && exit 0; touch /data/there; echo first; exit 1"
    mounts = [{"name": "v", "mountPath": "/data"}]
    pod = {"restartPolicy": "OnFailure", "volumes": [{"name": "v", "emptyDir": {}}]}
    kube.create(job(script(once, volumeMounts=mounts), pod=pod))
    assert kube.ended() == ("Complete", "CompletionsReached")
    (one,) = kube.pods()
    assert one["status"]["containerStatuses"][0]["restartCount"] == 1
    assert kube.kubectl("logs", "--previous", one["metadata"]["name"]) == "first\n"


def test_job_without_indexes_runs_as_many_pods_as_needed(kube: Kube) -> None:
    kube.create(job("exit 0", completionMode="NonIndexed", completions=3, parallelism=2))
    assert kube.ended() == ("Complete", "CompletionsReached")
    assert len(kube.pods()) == 3 and kube.job()["status"]["succeeded"] == 3


@pytest.mark.needs("kubectl")
def test_kubectl_applies_shows_logs_and_deletes(kube: Kube) -> None:
    text = yaml.safe_dump(job("echo hello; " + SLEEP))
    assert "created" in kube.kubectl("apply", "-f", "-", given=text)
    assert "job.batch/j" in kube.kubectl("apply", "-f", "-", given=text)
    (name,) = kube.running(1)
    kube.said(name, "up")
    assert kube.kubectl("logs", name) == "hello\nup\n"
    assert kube.kubectl("logs", "--tail=1", name) == "up\n"
    assert "hello\nup\n" in kube.kubectl("logs", "job/j")
    assert "completionMode: Indexed" in kube.kubectl("get", "job", "j", "-o", "yaml")
    assert "Running" in kube.kubectl("get", "pods")
    assert f"Created pod: {name}" in kube.kubectl("describe", "job", "j")
    assert "Container started" in kube.kubectl("describe", "pod", name)
    kube.kubectl("delete", "job", "j", "--wait=true")
    until(lambda: not kube.pods(), "the pods' end", kube.pods)
