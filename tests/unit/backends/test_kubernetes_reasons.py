"""What a cluster says, in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.backends.cloud import GiveUp, KeepWaiting, Ready
from hostler.backends.kubernetes import config, reasons, refusals, removal
from hostler.backends.kubernetes.reasons import PodReason
from hostler.backends.kubernetes.watching import JobView, decide
from hostler.errors import CloudError, UsageError


def pending(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"status": {"phase": "Pending", "conditions": [condition]}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"status": {"phase": "Pending", "initContainerStatuses": [{"name": "bring", "state": state}]}}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", "3 with too few CPUs free"),
        (
            "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.",
            "2 with too little memory free",
        ),
        (
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: "
            "3 No preemption victims found for incoming pod.",
            "3 without a free nvidia.com/gpu (",
        ),
        (
            "0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had untolerated taint {team: other}.",
            "2 that `node_selector` excludes, 1 with a taint that `tolerations` lacks: team: other",
        ),
        (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            "no node has room: 2 without a free nvidia.com/gpu (",
        ),
        (
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "its volume is not ready (0/2 nodes are available: pod has unbound",
        ),
        (
            '0/2 nodes are available: persistentvolumeclaim "data" not found. not found',
            "no claim named data for its volume (0/2 nodes",
        ),
    ],
)
def test_why_no_node_takes_a_pod(message: str, words: str) -> None:
    said = reasons.of_pod(pending(message))
    assert said.state == "waits" and words in said.words and message in said.words


@pytest.mark.parametrize(
    ("pod", "state", "words"),
    [
        (waiting("ImagePullBackOff", 'Back-off pulling image "nope"'), "waits", "its image cannot be pulled"),
        (waiting("ErrImagePull"), "waits", "its image cannot be pulled (ErrImagePull)"),
        (waiting("InvalidImageName"), "waits", "no valid name"),
        (
            waiting("CreateContainerConfigError", 'secret "keys" not found'),
            "waits",
            'does not exist (CreateContainerConfigError: secret "keys" not found)',
        ),
        (waiting("PodInitializing"), "starts", "is being started"),
        ({"status": {"phase": "Succeeded"}}, "gone", "no run was left"),
        (
            {"status": {"phase": "Failed", "reason": "Evicted", "message": "low"}},
            "gone",
            "ended: Evicted: low",
        ),
        ({"metadata": {"deletionTimestamp": "now"}, "status": {"phase": "Running"}}, "leaves", "leaves"),
        (
            {
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "worker", "state": {"running": {"startedAt": "now"}}}],
                }
            },
            "runs",
            "runs",
        ),
        (
            {
                "status": {
                    "phase": "Failed",
                    "containerStatuses": [
                        {"name": "worker", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
                    ],
                }
            },
            "gone",
            "ended with 137 (OOMKilled)",
        ),
    ],
)
def test_what_a_pod_does(pod: dict[str, Any], state: str, words: str) -> None:
    said = reasons.of_pod(pod)
    assert said.state == state and words in said.words


def test_pod_whose_image_lacks_python_is_not_waited_for() -> None:
    over = {"exitCode": 128, "reason": "StartError", "message": 'exec: "python3": executable file not found'}
    states = [{"name": "bring", "state": {"terminated": over}}]
    said = reasons.of_pod({"status": {"phase": "Failed", "initContainerStatuses": states}})
    assert said.never and "python3" in said.hint and "not found" in said.words
    done = decide(JobView([said]), 1, 0.0, patience=60.0, starting=60.0, settled=60.0)
    assert isinstance(done, GiveUp) and "ended with 128 (StartError" in done.why


def test_missing_claim_is_given_up_after_the_stockout() -> None:
    said = reasons.of_pod(
        pending('0/3 nodes are available: persistentvolumeclaim "nosuch" not found. not found')
    )
    bounds = {"patience": 600.0, "starting": 600.0, "settled": 10.0}
    assert decide(JobView([said]), 1, 9.0, **bounds) == KeepWaiting()
    done = decide(JobView([said]), 1, 10.0, **bounds)
    assert isinstance(done, GiveUp) and "nosuch" in done.why and "kubectl get pvc" in done.hint


def test_image_with_an_invalid_name_is_not_waited_for() -> None:
    said = reasons.of_pod(
        waiting(
            "ErrImagePull",
            'failed to parse image reference "UPPER/case:1": invalid reference format: repository name must '
            "be lowercase",
        )
    )
    assert said.never and "no valid name" in said.words


def test_quota_for_fewer_pods_lets_those_that_come_work() -> None:
    full = PodReason("waits", "waits: the namespace's quota is used up", failing=True)
    bounds = {"patience": 60.0, "starting": 90.0, "settled": 10.0}
    assert decide(JobView([START], full, 2), 1, 30.0, **bounds) == KeepWaiting()
    assert decide(JobView([RUNS], full, 2), 1, 30.0, **bounds) == Ready()
    done = decide(JobView([RUNS], full, 2), 3, 30.0, **bounds)
    assert done == GiveUp("the namespace's quota is used up")


def test_a_job_without_pods_says_why() -> None:
    quota = {
        "reason": "FailedCreate",
        "message": "pods x is forbidden: exceeded quota: small, requested: cpu=4",
    }
    said = reasons.of_job({}, [quota])
    assert "quota is used up: small, requested: cpu=4" in said.words and "raise the quota" in said.hint
    account = {"reason": "FailedCreate", "message": 'error looking up: serviceaccount "bot" not found'}
    assert "no service account named bot" in reasons.of_job({}, [account]).words
    assert "queue admits it" in reasons.of_job({"spec": {"suspend": True}}, []).words


def test_cluster_without_any_gpu_names_the_drivers_command() -> None:
    bare = {"status": {"allocatable": {"cpu": "4"}}}
    gke = {**bare, "metadata": {"labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}}
    assert "nvidia-driver-installer" in reasons.no_driver("nvidia.com/gpu", [gke, bare])
    assert "k8s-device-plugin" in reasons.no_driver("nvidia.com/gpu", [bare])
    assert reasons.no_driver("nvidia.com/gpu", [{"status": {"allocatable": {"nvidia.com/gpu": "1"}}}]) == ""
    assert "nvidia-driver-installer" in reasons.no_driver("nvidia.com/gpu", None)


FORBIDDEN = (
    'jobs.batch is forbidden: User "me" cannot create resource "jobs" in API group "batch" '
    'in the namespace "train"'
)


@pytest.mark.parametrize(
    ("status", "said", "message", "hint"),
    [
        (
            403,
            FORBIDDEN,
            "you may not create jobs in namespace train",
            '["batch"], resources: ["jobs"], verbs: ["create"]',
        ),
        (
            404,
            'namespaces "train" not found',
            "no namespace named train",
            "kubectl create namespace train",
        ),
        (401, "Unauthorized", "does not know you", "log in again"),
        (403, "pods is forbidden: exceeded quota: q, requested: cpu=1", "quota is used up", "lower"),
        (422, 'Job.batch "x" is invalid: spec.completions', "does not accept it", "--dry-run"),
        (503, "busy", "asks to wait", "again"),
    ],
)
def test_why_the_cluster_said_no(status: int, said: str, message: str, hint: str) -> None:
    found = refusals.read(status, "", said, "train")
    assert message in found[0] and hint in found[1]


START = PodReason("starts", "is being started")
RUNS, WAIT = PodReason("runs", "runs"), PodReason("waits", "waits: no node has room")
PULL = PodReason("waits", "waits: its image cannot be pulled", "check `image`", failing=True)
NAME = PodReason("waits", "waits: its image has no valid name", never=True, failing=True)


@pytest.mark.parametrize(
    ("view", "need", "waited", "then"),
    [
        (JobView([]), 1, 0.0, KeepWaiting()),
        (JobView([RUNS, WAIT]), 1, 0.0, Ready()),
        (JobView([RUNS, WAIT]), 2, 5.0, KeepWaiting()),
        (
            JobView([RUNS, WAIT]),
            2,
            60.0,
            GiveUp("1 of 2 workers run after 60 s: no node has room", later=True),
        ),
        (
            JobView([WAIT]),
            1,
            60.0,
            GiveUp("none of its workers runs after 60 s: no node has room", later=True),
        ),
        (JobView([START]), 1, 60.0, KeepWaiting()),
        (
            JobView([START]),
            1,
            90.0,
            GiveUp("none of its workers runs after 90 s: is being started", later=True),
        ),
        (JobView([PULL]), 1, 5.0, KeepWaiting()),
        (JobView([PULL]), 1, 10.0, GiveUp("its image cannot be pulled", "check `image`")),
        (JobView([RUNS, PULL]), 1, 10.0, Ready()),
        (JobView([NAME]), 1, 0.0, GiveUp("its image has no valid name")),
        (JobView([], finished=True), 1, 0.0, Ready()),
        (JobView([], failed="PodFailurePolicy: x", finished=True), 1, 0.0, GiveUp("PodFailurePolicy: x")),
        (JobView([], queued=True), 4, 0.0, Ready()),
    ],
)
def test_how_a_launch_goes_on(view: JobView, need: int, waited: float, then: object) -> None:
    assert decide(view, need, waited, patience=60.0, starting=90.0, settled=10.0) == then


CONFIG = """
current-context: two
clusters:
- {name: c1, cluster: {server: "https://one", certificate-authority: ca.crt}}
- {name: c2, cluster: {server: "https://two"}}
contexts:
- {name: one, context: {cluster: c1, user: u, namespace: train}}
- {name: two, context: {cluster: c2, user: u}}
users: [{name: u, user: {token: t}}]
"""


def test_a_context_is_found_with_its_namespace_and_files(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    found = config.load([file], "one")
    assert (found.context, found.namespace, found.server) == ("one", "train", "https://one")
    assert found.body["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "ca.crt")
    assert config.load([file], None).context == "two" and config.load([file], None).namespace == "default"


def test_several_kubeconfigs_merge_and_the_first_definition_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("current-context: one\ncontexts: [{name: one, context: {cluster: c2}}]")
    second.write_text(CONFIG)
    assert config.load([tmp_path / "none", first, second], None).server == "https://two"


def test_a_wrong_context_names_those_there_are(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    with pytest.raises(UsageError) as error:
        config.load([file], "onne")
    assert "did you mean 'one'" in error.value.hint and "one, two" in error.value.hint


def test_no_kubeconfig_and_a_damaged_one_are_said(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match="no kubeconfig found"):
        config.load([tmp_path / "none"], None)
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(CloudError, match="cannot be read"):
        config.load([tmp_path / "bad"], None)


def test_a_finished_job_and_its_things_are_no_orphans() -> None:
    from hostler.backends.base import Thing

    def thing(kind: str, g: str, *, works: bool = False) -> Thing:
        return Thing(kind, f"{kind}{g}", "", "p", "f", "s", g, works=works)

    over, live = (
        [thing("Job", "1"), thing("Secret", "1")],
        [thing("Job", "2", works=True), thing("Secret", "3")],
    )
    assert removal.needless([*over, *live]) == live
