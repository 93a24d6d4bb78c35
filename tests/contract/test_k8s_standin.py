"""Indexed Jobs: each rule once, on the stand-in, or on a real cluster with HOSTLER_TEST_KUBECONFIG."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import kube_world
from kube_world import Kube, code, job, reasons, until

SLEEP = "trap 'exit 143' TERM; echo up; while true; do sleep 0.05; done"


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[Kube]:
    if kube_world.REAL:
        with kube_world.namespace(Path(kube_world.REAL)) as real:
            yield real
    else:
        with kube_world.stand_in(tmp_path) as (started, _):
            yield started


def test_every_index_runs_once_and_knows_its_number_by_env_label_annotation_and_name(kube: Kube) -> None:
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


def test_an_index_is_replaced_until_it_exits_0_and_the_others_are_left_alone(kube: Kube) -> None:
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}
    once = "test $JOB_COMPLETION_INDEX = 0 || exit 0; test $FAILED -ge 2 || exit 7"
    failures = "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"
    env = [{"name": "FAILED", "valueFrom": {"fieldRef": {"fieldPath": failures}}}]
    kube.create(job(kube_world.script(once, env=env), count=2, backoffLimitPerIndex=5, pod=volumes))
    assert kube.ended() == ("Complete", "CompletionsReached")
    assert [code(pod) for pod in kube.pods(index=0)].count(7) == 2
    assert [code(pod) for pod in kube.pods(index=1)] == [0]
    assert kube.job()["status"]["failed"] == 2


def test_parallelism_bounds_how_many_run_at_once(kube: Kube) -> None:
    kube.create(job(SLEEP, count=3, parallelism=1))
    (first,) = kube.running(1)
    assert first.startswith("j-0-") and len(kube.pods()) == 1
    assert kube.job()["status"]["active"] == 1


@pytest.mark.needs("kubectl")
def test_kubectl_applies_shows_logs_and_deletes(kube: Kube) -> None:
    text = yaml.safe_dump(job("echo hello; " + SLEEP))
    assert "created" in kube.kubectl("apply", "-f", "-", given=text)
    (name,) = kube.running(1)
    kube.said(name, "up")
    assert kube.kubectl("logs", name) == "hello\nup\n"
    assert kube.kubectl("logs", "--tail=1", name) == "up\n"
    assert "completionMode: Indexed" in kube.kubectl("get", "job", "j", "-o", "yaml")
    assert "Running" in kube.kubectl("get", "pods")
    assert "j" in kube.kubectl("describe", "job", "j")
    kube.kubectl("delete", "job", "j", "--wait=true")
    until(lambda: not kube.pods(), "the pods' end", kube.pods)
