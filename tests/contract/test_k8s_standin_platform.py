"""What only the stand-in lets a test do: lost nodes, failed pulls, refusals, a forgotten past, accounts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from lightkube import Client, KubeConfig
from lightkube.codecs import from_dict
from lightkube.core.exceptions import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Node, Pod

import kube_world
from hostler import proctable
from hostler.backends.base import Launch
from hostler.backends.kubernetes import manifest
from hostler.emulators.k8s import Cluster, Pace
from hostler.spec.project import Fleet
from kube_world import Manifest, StandIn, code, job, pod, reasons, script, until

pytestmark = pytest.mark.usefixtures("root")
SLEEP = "trap 'exit 143' TERM; echo up; while true; do sleep 0.05; done"
IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def scheduled(stand_in: StandIn, name: str = "p") -> Manifest:
    """The condition PodScheduled once it is there."""

    def found() -> Manifest:
        known = stand_in.pod(name)["status"].get("conditions") or []
        return next((one for one in known if one["type"] == "PodScheduled"), {})

    until(lambda: bool(found()), "a word of the scheduler", lambda: stand_in.pod(name))
    return found()


def test_silently_lost_nodes_pods_are_replaced_after_its_object_goes(
    stand_in: StandIn,
) -> None:
    cluster = stand_in.cluster
    stand_in.create(job(SLEEP, backoffLimitPerIndex=0, podFailurePolicy=IGNORE))
    (first,) = stand_in.running(1)
    stand_in.said(first, "up")
    node, pids = stand_in.pod(first)["spec"]["nodeName"], cluster.pids(first)
    assert pids
    cluster.lose_node(node)
    until(lambda: not any(proctable.start_of(pid) for pid in pids), "the end of its processes")
    until(lambda: node not in cluster.nodes, "the end of the node")
    until(lambda: bool(set(stand_in.running(1)) - {first}), "a replacement", stand_in.pods)
    (second,) = stand_in.pods()
    assert second["spec"]["nodeName"] != node
    assert stand_in.job()["status"].get("failed", 0) == 0


def test_lost_nodes_pod_looks_running_until_collected_as_disrupted(tmp_path: Path) -> None:
    with kube_world.stand_in(tmp_path, Pace(node_gone=0.3, collect=2.0)) as stand_in:
        stand_in.create(pod(SLEEP))
        stand_in.said("p", "up")
        heard: list[tuple[str, str]] = []
        stand_in.cluster.lose_node(stand_in.pod("p")["spec"]["nodeName"])
        assert stand_in.pod("p")["status"]["phase"] == "Running"
        for kind, one in stand_in.client.watch(Pod, fields={"metadata.name": "p"}):
            held = reasons(kube_world.plain(one))
            heard.append((str(one.status.phase), held.get("DisruptionTarget", "")))
            if kind == "DELETED":
                break
        assert heard[0] == ("Running", "") and heard[-1] == ("Failed", "DeletionByPodGC")


def test_node_shutting_down_gives_its_pods_a_moment_and_goes(stand_in: StandIn) -> None:
    text = "trap 'echo saved; exit 0' TERM; echo up; while true; do sleep 0.05; done"
    given = {"terminationGracePeriodSeconds": 60}
    stand_in.create(job(text, backoffLimitPerIndex=0, podFailurePolicy=IGNORE, pod=given))
    (first,) = stand_in.running(1)
    stand_in.said(first, "up")
    node = stand_in.pod(first)["spec"]["nodeName"]
    ended: list[Manifest] = []
    stand_in.cluster.shut_down_node(node, grace=60)
    for _, one in stand_in.client.watch(Pod, fields={"metadata.name": first}):
        ended.append(kube_world.plain(one))
        if ended[-1]["status"]["phase"] == "Failed":
            break
    assert (ended[-1]["status"]["reason"], code(ended[-1])) == ("Terminated", 0)
    assert reasons(ended[-1])["DisruptionTarget"] == "TerminationByKubelet"
    until(lambda: node not in stand_in.cluster.nodes, "the end of the node")
    until(lambda: bool(set(stand_in.running(1)) - {first}), "a replacement", stand_in.pods)


def test_evict_is_the_eviction_api(stand_in: StandIn) -> None:
    stand_in.create(pod("trap 'echo bye; sleep 0.2; exit 7' TERM; echo up; while true; do sleep 0.05; done"))
    stand_in.said("p", "up")
    stand_in.cluster.evict("p", grace=60)
    last: Manifest = {}
    for kind, one in stand_in.client.watch(Pod, fields={"metadata.name": "p"}):
        last = kube_world.plain(one)
        if kind == "DELETED":
            break
    assert (reasons(last)["DisruptionTarget"], code(last)) == ("EvictionByEvictionAPI", 7)


@pytest.mark.needs("kubectl")
def test_a_drained_node_gives_its_pods_to_others(stand_in: StandIn) -> None:
    stand_in.create(job(SLEEP, backoffLimitPerIndex=0, podFailurePolicy=IGNORE))
    (first,) = stand_in.running(1)
    node = stand_in.pod(first)["spec"]["nodeName"]
    stand_in.kubectl("drain", node, "--ignore-daemonsets", "--force", "--delete-emptydir-data")
    (second,) = stand_in.running(1)
    assert stand_in.pod(second)["spec"]["nodeName"] != node
    assert "SchedulingDisabled" in stand_in.kubectl("get", "nodes")


def test_killed_pod_ends_with_137_as_if_out_of_memory(stand_in: StandIn) -> None:
    stand_in.create(job(SLEEP, backoffLimitPerIndex=1))
    (first,) = stand_in.running(1)
    stand_in.cluster.kill(first)
    until(lambda: len(stand_in.pods()) == 2, "a replacement", stand_in.pods)
    state = stand_in.pod(first)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")
    assert stand_in.job()["status"]["failed"] == 1


def test_pod_over_its_disk_limit_is_evicted_by_the_kubelet(stand_in: StandIn) -> None:
    stand_in.create(job(SLEEP, backoffLimitPerIndex=1, podFailurePolicy=IGNORE))
    (first,) = stand_in.running(1)
    stand_in.said(first, "up")
    stand_in.cluster.exceed_disk(first)
    until(lambda: len(stand_in.pods()) == 2, "a replacement", stand_in.pods)
    status = stand_in.pod(first)["status"]
    said = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", said)
    state = status["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "Error")
    assert "DisruptionTarget" not in reasons(stand_in.pod(first))
    assert stand_in.job()["status"]["failed"] == 1
    told = kube_events(stand_in, first)
    assert told["Evicted"] == said


def test_claim_without_storage_class_says_that_nothing_binds_it(stand_in: StandIn) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {**spec, "storageClassName": ""}}
    stand_in.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim})
    stand_in.create(pod(SLEEP, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    said = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    assert scheduled(stand_in)["message"] == said
    why = "no persistent volumes available for this claim and no storage class is set"
    assert kube_events(stand_in, "data") == {"FailedBinding": why}


def kube_events(stand_in: StandIn, name: str) -> dict[str, str]:
    """Reason → message of the events about an object."""
    told = stand_in.client.list(Event, fields={"involvedObject.name": name})
    return {str(one.reason): str(one.message) for one in told}


def test_unpullable_image_backs_off_and_says_why_until_it_can(stand_in: StandIn) -> None:
    stand_in.cluster.pull_fails("registry.example/none:*")
    stand_in.create(pod(script("echo here") | {"image": "registry.example/none:1"}))
    seen: dict[str, str] = {}

    def looked() -> bool:
        for one in stand_in.pod("p")["status"].get("containerStatuses") or []:
            state = one["state"].get("waiting") or {}
            seen[state.get("reason", "")] = state.get("message", "")
        return {"ErrImagePull", "ImagePullBackOff"} <= seen.keys()

    until(looked, "both reasons", lambda: seen)
    assert 'Back-off pulling image "registry.example/none:1"' in seen["ImagePullBackOff"]
    assert seen["ErrImagePull"] == (
        'failed to pull and unpack image "registry.example/none:1": failed to resolve reference '
        '"registry.example/none:1": failed to do request: Head '
        '"https://registry.example/v2/none/manifests/1": dial tcp 127.0.0.1:443: connect: connection refused'
    )
    assert stand_in.pod("p")["status"]["phase"] == "Pending"
    with pytest.raises(ApiError, match="waiting to start"):
        stand_in.log("p")
    stand_in.cluster.pull_works("registry.example/none:*")
    assert stand_in.over()["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("image", "more", "reason", "said"),
    [
        (
            "registry.example/none:1",
            {"imagePullPolicy": "Never"},
            "ErrImageNeverPull",
            'Container image "registry.example/none:1" is not present with pull policy of Never',
        ),
        ("UPPER/case:1", {}, "ErrImagePull", "invalid reference format: repository name must be lowercase"),
    ],
    ids=["never", "name"],
)
def test_image_that_never_comes_is_told_in_the_kubelets_words(
    stand_in: StandIn, image: str, more: dict[str, str], reason: str, said: str
) -> None:
    stand_in.cluster.pull_fails("registry.example/none:*")
    stand_in.create(pod(script("echo here") | {"image": image, **more}))

    def waiting() -> dict[str, str]:
        found = stand_in.pod("p")["status"].get("containerStatuses") or [{"state": {}}]
        told: dict[str, str] = found[0]["state"].get("waiting") or {}
        return told

    until(lambda: waiting().get("reason") == reason, reason, waiting)
    assert said in waiting()["message"]


def test_restricted_namespace_takes_only_pods_without_rights(stand_in: StandIn) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    stand_in.client.patch(Namespace, "default", {"metadata": {"labels": label}})
    said = stand_in.refused(pod("true")).status.message or ""
    assert 'pods "p" is forbidden: violates PodSecurity "restricted:latest": ' in said
    assert 'allowPrivilegeEscalation != false (container "main" must set' in said
    assert 'drop=["ALL"]' in said and "runAsNonRoot != true (pod or container" in said
    fleet = Fleet("gke", "kubernetes", workers=1, scope="s", options={"user": 1000})
    made = manifest.manifest(fleet, Launch("s3://bucket/runs", generation="gke/1"))
    spec = made.job["spec"]["template"]["spec"]
    stand_in.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ours"}, "spec": spec})


def test_gpus_selectors_taints_and_cpus_decide_where_pods_go(stand_in: StandIn) -> None:
    cluster = stand_in.cluster
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    cluster.add_node("gpu-1", gpus=2, labels={"pool": "gpu"}, taints=[taint])
    gpus: dict[str, Any] = {"limits": {"nvidia.com/gpu": 1}}
    alike = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    stand_in.create(pod(script("true", resources=gpus), name="bare"))
    assert scheduled(stand_in, "bare")["message"] == (
        "0/4 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, "
        "3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/4 nodes are available: "
        "4 Preemption is not helpful for scheduling."
    )
    stand_in.create(pod(script(SLEEP, resources=gpus), name="one", tolerations=alike))
    stand_in.create(pod(script(SLEEP, resources=gpus), name="two", tolerations=alike))
    assert scheduled(stand_in, "one")["status"] == scheduled(stand_in, "two")["status"] == "True"
    assert {stand_in.pod(name)["spec"]["nodeName"] for name in ("one", "two")} == {"gpu-1"}
    stand_in.create(pod(script(SLEEP, resources=gpus), name="three", tolerations=alike))
    assert scheduled(stand_in, "three")["message"] == (
        "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        "preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )
    stand_in.client.delete(Pod, "one")
    until(lambda: scheduled(stand_in, "three")["status"] == "True", "the room of another")


def test_a_selector_that_no_node_has_is_told(stand_in: StandIn) -> None:
    stand_in.create(pod("true", nodeSelector={"pool": "none"}))
    said = scheduled(stand_in)
    assert said["reason"] == "Unschedulable"
    assert said["message"].startswith(
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    )
    stand_in.cluster.add_node("late", labels={"pool": "none"})
    assert stand_in.over()["spec"]["nodeName"] == "late"


def test_a_spot_node_wants_its_toleration(stand_in: StandIn) -> None:
    cluster, key = stand_in.cluster, "cloud.google.com/gke-spot"
    cluster.add_node("spot-1", spot=True)
    stand_in.create(pod("true", name="shy", nodeSelector={key: "true"}))
    assert scheduled(stand_in, "shy")["status"] == "False"
    alike = [{"key": key, "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    stand_in.create(pod("true", nodeSelector={key: "true"}, tolerations=alike))
    assert stand_in.over()["spec"]["nodeName"] == "spot-1"


def test_what_is_forbidden_is_403_in_the_words_of_kubernetes(stand_in: StandIn) -> None:
    stand_in.cluster.forbid("create", "jobs")
    status = stand_in.refused(job()).status
    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message == (
        'jobs.batch is forbidden: User "stand-in" cannot create resource "jobs" in API group "batch" in the '
        'namespace "default"'
    )
    stand_in.cluster.forbid("get", "pods/log")
    stand_in.create(pod("true"))
    with pytest.raises(ApiError, match='cannot get resource "pods/log"'):
        stand_in.log("p")
    stand_in.cluster.allow()
    stand_in.create(job())


def role(*rules: dict[str, list[str]]) -> list[Manifest]:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    subject = {"kind": "ServiceAccount", "name": "launcher"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "launcher"}},
        {**head, "kind": "Role", "metadata": {"name": "r"}, "rules": list(rules)},
        {**head, "kind": "RoleBinding", "metadata": {"name": "r"}, "subjects": [subject], "roleRef": ref},
    ]


def test_service_account_may_do_only_what_its_role_says(stand_in: StandIn) -> None:
    for thing in role({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]}):
        stand_in.create(thing)
    config = KubeConfig.from_file(str(stand_in.cluster.kubeconfig_of("launcher")))
    account = Client(config=config)
    account.create(from_dict(job(suspend=True)))
    assert account.get(Job, "j").metadata is not None
    for refused in (
        lambda: account.delete(Job, "j"),
        lambda: list(account.list(Pod)),
        lambda: list(account.list(Node)),
    ):
        with pytest.raises(ApiError, match='User "system:serviceaccount:default:launcher" cannot') as caught:
            refused()
        assert caught.value.status.code == 403


def test_a_watch_of_a_forgotten_past_is_410(stand_in: StandIn) -> None:
    listed = stand_in.client.list(ConfigMap)
    assert list(listed) == []
    stand_in.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    stand_in.cluster.forget()
    with pytest.raises(ApiError, match="too old resource version") as caught:
        next(iter(stand_in.client.watch(ConfigMap, resource_version=listed.resourceVersion)))
    assert (caught.value.status.code, caught.value.status.reason) == (410, "Expired")


def test_a_namespace_goes_with_all_that_is_in_it(stand_in: StandIn) -> None:
    with kube_world.namespace(stand_in.config) as other:
        other.create(job(SLEEP))
        other.running(1)
        assert stand_in.cluster.processes()
    until(lambda: not stand_in.cluster.processes(), "the end of its processes")
    until(lambda: other.namespace not in stand_in.kubectl("get", "ns"), "the end of the namespace")


def test_an_image_may_bring_its_command(stand_in: StandIn) -> None:
    stand_in.cluster.image("mine:1", entrypoint=["sh", "-c"], cmd=["echo $COLOUR"], env={"COLOUR": "blue"})
    assert stand_in.output({"name": "main", "image": "mine:1"}) == "blue\n"


def test_tmp_and_home_are_the_containers_and_leave_machine_untouched(
    stand_in: StandIn,
) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp") as mine:
        said = stand_in.output("ls -A /tmp; touch /tmp/here /root/here /here; ls /tmp/here /here /root/here")
    assert Path(mine.name).name not in said
    assert said.endswith("/here\n/root/here\n/tmp/here\n")
    assert not any(Path(where, "here").exists() for where in ("/tmp", "/root", "/"))


def test_a_host_path_is_the_machines_own_folder(stand_in: StandIn, tmp_path: Path) -> None:
    shared = tmp_path / "shared folder"
    shared.mkdir()
    volumes = [{"name": "h", "hostPath": {"path": str(shared)}}]
    mounts = [{"name": "h", "mountPath": str(shared)}]
    stand_in.output(script(f"echo out > '{shared}/f'", volumeMounts=mounts), volumes=volumes)
    assert (shared / "f").read_text() == "out\n"


def test_a_claim_outlives_its_pods(stand_in: StandIn) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    one = script("echo kept >> /v/f; cat /v/f", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    stand_in.create(pod(one, volumes=volumes))
    said = '0/3 nodes are available: persistentvolumeclaim "data" not found. not found'
    assert scheduled(stand_in)["message"] == said
    meta = {"name": "data"}
    stand_in.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    stand_in.over()
    stand_in.create(pod(one, name="q", volumes=volumes))
    stand_in.over("q")
    assert stand_in.log("q") == "kept\nkept\n"


def test_declared_seconds_pass_as_fast_as_the_pace_says(tmp_path: Path) -> None:
    with kube_world.stand_in(tmp_path, Pace(scale=100)) as stand_in:
        stand_in.create(job(SLEEP, activeDeadlineSeconds=100, ttlSecondsAfterFinished=100))
        until(lambda: not list(stand_in.client.list(Job)), "deadline and time to live")


def test_no_process_outlives_a_cluster_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib, json, urllib.request\n"
        "from hostler.emulators.k8s import Cluster\n"
        "cluster = Cluster(pathlib.Path(sys.argv[1])).__enter__()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(*cluster.processes(), flush=True)\n"
        "time.sleep(600)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "ready\n"
        kube = kube_world.Kube(tmp_path / "kubeconfig", "default")
        kube.create(job(f"(setsid sleep 1000 &); {SLEEP}"))
        (name,) = kube.running(1)
        kube.said(name, "up")
        holder.stdin.write("\n")
        holder.stdin.flush()
        pids = [int(word) for word in holder.stdout.readline().split()]
        assert len(pids) >= 2
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    until(lambda: not any(proctable.start_of(pid) for pid in pids), "the end of all processes", lambda: pids)


@pytest.mark.needs("kubectl")
def test_terminal_start_prints_the_next_commands_and_leaves_nothing() -> None:
    command = [sys.executable, "-m", "hostler.emulators.k8s", "--nodes", "2", "--gpus", "1"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        name, _, path = served.stdout.readline().strip().partition("=")
        assert name == "export KUBECONFIG"
        kube = kube_world.Kube(Path(path), "default")
        sizes = "jsonpath={.items[*].status.allocatable.nvidia\\.com/gpu}"
        assert kube.kubectl("get", "nodes", "-o", sizes) == "1 1"
    finally:
        served.terminate()
    assert served.wait() == 0 and not Path(path).exists()


def test_two_clusters_share_neither_objects_nor_addresses(stand_in: StandIn, tmp_path: Path) -> None:
    with Cluster(tmp_path / "second", nodes=["only"]) as second:
        other = StandIn(second)
        for each in (stand_in, other):
            each.create(pod(SLEEP))
            each.said("p", "up")
        addresses = {each.pod("p")["status"]["podIP"] for each in (stand_in, other)}
        assert len(addresses) == 2 and second.nodes == ["only"]
