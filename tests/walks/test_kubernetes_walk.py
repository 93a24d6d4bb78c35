"""Fleets of pods, from the command to their end: on the stand-in cluster, or on a real one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gang_world import GANG, GANG_BY_HAND
from gce_world import weights
from hostler.records.rows import Row
from k8s_world import IMAGE, REAL, Pods, pods
from secret_world import NAMES, Hold, Planted, script, until
from servers import BUCKET, CREDENTIALS, make_bucket, moto

pytestmark = [pytest.mark.timeout(1800), pytest.mark.needs("kubectl")]
NOWHERE = "registry.invalid/none:1"
BARE = "registry.k8s.io/pause:3.10"  # has no Python


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Pods]:
    with pods(tmp_path) as made:
        if made.cluster:
            made.cluster.pull_fails("registry.invalid/*")
            made.cluster.image(BARE, env={"PATH": "/nowhere"})
        yield made


def test_sweep_survives_evictions_a_killed_pod_and_a_lost_node(
    world: Pods,
) -> None:
    world.project(3)
    world.sweep_file(6, steps=12)
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
    assert done.code == 0, done.err
    world.until(lambda: len(world.pods()) == 3)
    on = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.things("Pod")}
    first, second, third = world.pods()
    world.evict(first)
    world.kill(second)
    world.until(lambda: len(set(world.pods()) - {first, second}) >= 2)
    world.lose_node(on[third])
    world.until_done(6)
    world.until_ended()
    assert world.weights(6) == {lr: weights(lr, 12) for lr in range(6)}
    [job] = world.things("Job")
    assert job["status"]["succeeded"] == 3 and job["spec"]["ttlSecondsAfterFinished"] == 600
    done = world.run("down", "gke", timeout=300)
    assert done.code == 0 and "nothing of gke is left" in done.err and world.gone(), done.err
    if world.cluster:
        left = [node for node in dict.fromkeys(on.values()) if node != on[third]]
        assert "nodes that are empty now" in done.err and any(node in done.err for node in left)


@pytest.mark.parametrize("gloo", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_four_ranks_lose_one_pod_without_changing_a_bit(world: Pods, gloo: bool) -> None:
    world.project(None, head="resources: {nodes: 4}")
    world.write("train.py", GANG if gloo else GANG_BY_HAND)
    world.sweep_file(2, name="gang")
    text = json.dumps(
        {"name": "gang", "command": "python train.py", "parameters": {"lr": [0, 1]}, "style": "none"}
    )
    world.write("gang.yaml", text)
    done = world.run("sweep", "-y", "--on", "gke", "gang.yaml", timeout=600)
    assert done.code == 0, done.err

    found = list[Row]()

    def second() -> bool:
        """The one that runs after the other has ended is in the middle; both are of the same look."""
        rows = world.rows("gang")
        if any(row.state == "done" for row in rows):
            found.extend(row for row in rows if row.state == "running" and (row.step or 0) >= 6)
        return bool(found)

    world.until(second)
    struck = found[0]
    world.kill(next(pod for pod in world.pods() if not pod.startswith(str(struck.host))))
    world.until_done(2, "gang")
    world.until_ended()
    whole, broken = sorted(world.rows("gang"), key=lambda row: row.id == struck.id)
    assert (whole.attempt, broken.attempt >= 2) == (1, True)
    told = [world.run("logs", row.name, timeout=120).out for row in (whole, broken)]
    ends = [dict(json.loads(said) for said in re.findall(r"^weights (.*)$", text, re.M)) for text in told]
    assert sorted(ends[0]) == [0, 1, 2, 3] and len(set(ends[0].values())) == 1
    assert ends[0] == ends[1], told[1]
    assert "goes on from checkpoint" in told[1]


def test_pods_take_hostler_driver_and_keys_from_bucket_and_secret(
    world: Pods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        if world.cluster:  # a real one has a bucket already
            url = stack.enter_context(moto(tmp_path))
            make_bucket(url)
            world.volume, world.url = False, f"s3://{BUCKET}/{world.name}"
            for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": url}.items():
                monkeypatch.setenv(name, value)
                world.env = {**world.env, name: value}
        world.project(1)
        world.sweep_file(2, steps=2)
        done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
        assert done.code == 0, done.err
        [job], secrets = world.things("Job"), world.things("Secret")
        [worker] = job["spec"]["template"]["spec"]["containers"]
        assert not any("KEY" in one["name"] for one in worker["env"])
        assert not world.cluster or "AWS_SECRET_ACCESS_KEY" in secrets[0]["data"]
        world.until_done(2)
        world.until_ended()
        assert world.weights(2) == {lr: weights(lr, 2) for lr in range(2)}
        assert world.run("down", "gke", timeout=300).code == 0 and world.gone()
        (world.folder / "hostler.yaml").unlink()  # its bucket goes before the cluster does


def test_no_rights_are_needed_but_those_that_are_printed(world: Pods) -> None:
    world.project(1, head="secrets: [TOKEN_OF_MINE]")
    world.env = {**world.env, "TOKEN_OF_MINE": "hush-hush-hush"}
    world.sweep_file(2, steps=2)
    bare = str(world.restricted(f"{world.name}-bot"))
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=120, KUBECONFIG=bare)
    assert done.code == 1 and "you may not create jobs in namespace" in done.err, done.err
    assert '{apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"]}' in done.err
    space = world.kubectl("config", "view", "--minify", "-o", "jsonpath={..namespace}") or "default"
    role = world.run("up", "gke", "--role", f"serviceaccount:{space}/{world.name}-bot").out
    world.write("role.yaml", role)
    world.kubectl("apply", "-f", str(world.folder / "role.yaml"))
    try:
        done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600, KUBECONFIG=bare)
        assert done.code == 0, done.err
        [job], [secret] = world.things("Job"), world.things("Secret")
        assert secret["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        name = secret["metadata"]["name"]
        for words in (("get", "secrets"), ("get", "secret", name), ("label", "secret", name, "a=b")):
            command = ["kubectl", "--kubeconfig", bare, *words]
            read = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert read.returncode and "forbidden" in read.stderr.lower(), read.stderr
        world.until_done(2)
        world.until_ended()
        assert "no run is left for this worker" in world.run("logs", "gke", KUBECONFIG=bare).out
        done = world.run("down", "gke", timeout=300, KUBECONFIG=bare)
        assert done.code == 0 and world.gone() and "your rights do not show" in done.err, done.err
    finally:
        world.kubectl("delete", "-f", str(world.folder / "role.yaml"))


def test_unpullable_image_leaves_nothing_and_kubectl_applies_the_manifest(
    world: Pods,
) -> None:
    world.project(1)
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace(IMAGE, NOWHERE))
    world.sweep_file(2, steps=40)
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
    assert done.code == 1 and "its image cannot be pulled" in done.err and NOWHERE in done.err, done.err
    assert "it was taken down" in done.err and "check `image`" in done.err
    world.until(world.gone)
    assert world.states() == {"queued": 2}
    world.write("hostler.yaml", text)
    shown = world.run("up", "gke", "--dry-run", timeout=120)
    assert shown.code == 0 and world.gone(), shown.err
    world.write("job.yaml", shown.out)
    world.kubectl("apply", "-f", str(world.folder / "job.yaml"))
    world.until(lambda: any(row.step for row in world.rows("grid")))
    said = world.run("doctor").out
    assert "belongs to no working fleet" not in said and "all of working fleets" in said, said
    world.until_done(2)
    world.until_ended()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(
            "node_selector: {nobody: has-it}", "that `node_selector` excludes", marks=pytest.mark.soak
        ),
        ("gpus: 1, node_selector: {}", "without a free nvidia.com/gpu"),
        pytest.param("secret: not-there", 'secret "not-there" not found', marks=pytest.mark.soak),
        ("volumes: {/data: nosuch}", 'persistentvolumeclaim "nosuch" not found. not found'),
        pytest.param(f"image: '{BARE}'", "check that `image` has python3", marks=pytest.mark.soak),
    ],
    ids=["selector", "gpu", "secret", "claim", "python"],
)
def test_unschedulable_run_is_reported_within_bounds_and_leaves_nothing(
    world: Pods, more: str, said: str
) -> None:
    if "volumes" in more and world.volume:
        more = more.replace("{", f"{{{world.url}: {{host: {world.url}}}, ", 1)
        world.project(1, more, volumes=False)
    else:
        world.project(1, more, image="" if "image" in more else IMAGE)
    world.sweep_file(1, steps=1)
    limits = {"HOSTLER_MACHINES": "600" if "volumes" in more else "6", "HOSTLER_STOCKOUT": "3"}
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=300, **limits)
    assert done.code in (1, 75) and said in done.err and "it was taken down" in done.err, done.err
    assert done.err.count("k8s-device-plugin") == ("gpu" in more), done.err
    world.until(world.gone)
    assert world.states() == {"queued": 1}


def test_claim_that_nothing_binds_is_reported_in_the_clusters_words(world: Pods) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": world.name}}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.write("claim.yaml", json.dumps({**claim, "spec": {**asked, "storageClassName": ""}}))
    world.kubectl("apply", "-f", str(world.folder / "claim.yaml"))
    more = f"/data: {world.name}"
    if world.volume:
        more = f"{world.url}: {{host: {world.url}}}, {more}"
    world.project(1, f"volumes: {{{more}}}", volumes=False)
    world.sweep_file(1, steps=1)
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=300, HOSTLER_MACHINES="6")
    assert done.code in (1, 75) and "its volume is not ready" in done.err, done.err
    why = "no persistent volumes available for this claim and no storage class is set"
    assert f"claim {world.name}: {why}" in done.err and "it was taken down" in done.err, done.err
    world.until(world.gone)
    world.kubectl("delete", "pvc", world.name)


@pytest.mark.skipif(bool(REAL), reason="a real image has its certificates")
def test_image_without_certificates_leaves_nothing_and_says_why(
    world: Pods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.cluster
    world.cluster.image(IMAGE, env={"SSL_CERT_FILE": "/dev/null", "SSL_CERT_DIR": "/nowhere"})
    with moto(tmp_path) as url:
        make_bucket(url)
        world.volume, world.url = False, f"s3://{BUCKET}/{world.name}"
        world.env = {**world.env, **CREDENTIALS, "AWS_ENDPOINT_URL": url}
        world.project(1)
        world.sweep_file(1, steps=1)
        done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=300)
        assert done.code == 1 and "install ca-certificates" in done.err, done.err
        assert "it was taken down" in done.err
        world.until(world.gone)
        (world.folder / "hostler.yaml").unlink()  # its bucket goes before the cluster does


def test_quota_for_one_pod_of_three_is_said_and_the_sweep_ends(world: Pods) -> None:
    world.project(3)
    held = Path(world.url, "hold")  # in the one folder that pods and this machine share
    if world.volume:
        held.touch()
    world.sweep_file(2, steps=8 if world.volume else 40, hold=str(held))
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": world.name}}
    world.write("quota.yaml", json.dumps({**head, "spec": {"hard": {"pods": "1"}}}))
    world.kubectl("apply", "-f", str(world.folder / "quota.yaml"))
    try:
        done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
        assert done.code == 0, done.err
        assert f"2 of 3 workers wait: the namespace's quota is used up: {world.name}" in done.err
        assert "have the quota raised" in done.err or "raise the quota" in done.err
        [job] = world.things("Job")
        assert job["metadata"]["name"] not in done.out.split()
        world.until(lambda: any(row.step for row in world.rows("grid")))  # before, its worker has not beaten
        said = world.run("status").out
        assert "1 run" in said and "2 wait: the namespace's quota is used up" in said, said
        held.unlink(missing_ok=True)
        world.until_done(2)
    finally:
        world.kubectl("delete", "quota", world.name)
    world.until_ended()


def test_rank_that_never_comes_is_reported_with_the_schedulers_reason(world: Pods) -> None:
    cpus = [node["status"]["allocatable"]["cpu"] for node in world.nodes()]
    most = max(float(one[:-1]) / 1000 if one.endswith("m") else float(one) for one in cpus)
    ranks = len(cpus) + 1
    world.project(None, f"resources: {{cpus: {0.6 * most:.1f}}}", head=f"resources: {{nodes: {ranks}}}")
    world.sweep_file(1, steps=1)
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=300, HOSTLER_MACHINES="12")
    assert done.code == 75 and f"of {ranks} workers run after 12 s" in done.err, done.err
    assert "with too few CPUs free" in done.err
    world.until(world.gone)


def test_wrong_context_missing_kubeconfig_and_missing_namespace_are_reported(
    world: Pods,
) -> None:
    world.project(1, "context: elsewhere")
    world.sweep_file(1, steps=1)
    known = world.kubectl("config", "get-contexts", "-o", "name").split()
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml")
    assert done.code != 0 and "no context named 'elsewhere'" in done.err, done.err
    assert all(name in done.err for name in known)
    world.project(1)
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", KUBECONFIG=str(world.folder / "none"))
    assert done.code == 1 and "no kubeconfig found" in done.err
    text = world.kubeconfig.read_text()
    world.write("silent", re.sub(r"https?://[^\s\"',}]+", "https://127.0.0.1:9", text))
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml", KUBECONFIG=str(world.folder / "silent"))
    assert done.code != 0 and "does not answer at https://127.0.0.1:9" in done.err, done.err
    world.project(1, "namespace: not-there-at-all")
    done = world.run("sweep", "-y", "--on", "gke", "grid.yaml")
    assert done.code == 1 and "kubectl create namespace not-there-at-all" in done.err
    assert world.gone()


def test_runs_secrets_are_in_a_secret_that_goes_with_job(world: Pods, tmp_path: Path) -> None:
    planted, hold = Planted(), Hold(Path(world.url)) if world.cluster else None  # on the pods' volume
    world.project(1, head=f"secrets: [{', '.join(NAMES)}]\nretries: 0")
    world.write("train.py", script(hold))
    words = ("run", "--on", "gke", "--name", "told")
    shown = [world.run(*words, "--dry-run", "train.py", **planted.values)]
    shown.append(world.run(*words, "--detach", "train.py", timeout=600, **planted.values))
    assert shown[-1].code == 0, shown[-1].err
    [secret], [job] = world.things("Secret"), world.things("Job")
    assert secret["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert set(secret["data"]) >= set(NAMES) and planted.is_in(json.dumps(secret))
    if hold:
        until(hold.waits, lambda: world.run("logs", "told").out[-3000:] + world.run("errors", "told").out)
        assert not planted.listed()
        files = planted.files(world.folder, tmp_path / "private")
        assert [path.name for path in files if path.name != "output.log"] == []
        hold.let_go()
    others = [world.things(kind) for kind in ("Job", "Pod", "Event")]
    assert not planted.is_in(json.dumps(others))
    world.until(lambda: world.states("told") == {"failed": 1})
    world.until_ended()
    shown += [world.run(*words) for words in (("logs", "told"), ("show", "--json", "told"), ("logs", "gke"))]
    assert planted.arrived(shown[2].out), shown[2].out[-3000:]
    assert not any(planted.is_in(answer.out + answer.err) for answer in shown)
    assert world.run("down", "gke", timeout=300).code == 0 and world.gone() and not world.things("Secret")
    assert not planted.files(world.folder, tmp_path / "private")


@pytest.mark.soak
def test_job_that_fails_later_says_why_and_is_replaced(world: Pods) -> None:
    world.project(1)
    world.sweep_file(1, steps=500)
    assert world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600).code == 0
    world.until(lambda: bool(world.rows("grid")[0].step))
    [job] = world.things("Job")
    deadline = '{"spec": {"activeDeadlineSeconds": 1}}'
    world.kubectl("patch", "job", job["metadata"]["name"], "--type=merge", "-p", deadline)
    world.until_ended()
    world.until(lambda: world.states() == {"queued": 1})
    said = world.run("status").out
    assert "failed: DeadlineExceeded" in said, said
    done = world.run("up", "gke", timeout=600)
    assert done.code == 0 and "1 worker of gke started" in done.err, done.err
    world.until(lambda: world.rows("grid")[0].attempt == 2)


@pytest.mark.soak
def test_job_held_back_by_its_queue_is_waited_for(world: Pods) -> None:
    world.project(1, "queue: team")
    world.sweep_file(1, steps=500)
    assert world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600).code == 0
    world.until(lambda: bool(world.rows("grid")[0].step))
    [job] = world.things("Job")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    hold = ["patch", "job", job["metadata"]["name"], "--type=merge", "-p"]
    world.kubectl(*hold, '{"spec": {"suspend": true}}')
    world.until(lambda: not world.things("Pod"))
    world.until(lambda: world.states() == {"queued": 1})
    assert "held back until its queue admits it" in world.run("status").out
    world.kubectl(*hold, '{"spec": {"suspend": false}}')
    world.until(lambda: world.rows("grid")[0].attempt == 2)


@pytest.mark.soak
def test_second_sweep_joins_the_job_and_refills_done_places(world: Pods) -> None:
    world.project(2)
    held = Path(world.url, "hold")  # in the one folder that pods and this machine share
    if world.volume:
        held.touch()
    world.sweep_file(1, name="long", steps=8 if world.volume else 60, hold=str(held))
    assert world.run("sweep", "-y", "--on", "gke", "long.yaml", timeout=600).code == 0
    succeeded = lambda: (world.things("Job")[0].get("status") or {}).get("succeeded")  # noqa: E731
    world.until(lambda: succeeded() == 1)
    world.sweep_file(2, name="more", steps=2)
    assert world.run("sweep", "-y", "--on", "gke", "more.yaml", timeout=600).code == 0
    world.until_done(2, "more")
    [job] = world.things("Job")
    assert job["spec"]["completions"] == 3
    held.unlink(missing_ok=True)
    world.until_done(1, "long")
    world.until_ended()


@pytest.mark.soak
def test_job_of_a_removed_fleet_is_an_orphan_doctor_removes(world: Pods) -> None:
    world.project(1)
    world.sweep_file(1, steps=200)
    assert world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600).code == 0
    assert "all of working fleets" in world.run("doctor").out
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace("  gke:", "  other:"))
    found = world.run("doctor")
    assert "belongs to no working fleet" in found.out, found.out
    assert world.run("doctor", "--remove", "-y", timeout=300).code == 0
    world.until(world.gone)
