"""What a fleet on Kubernetes will be, word for word; every object is one that its schema allows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from hostler.backends.base import Launch
from hostler.backends.kubernetes import manifest, rbac, text
from hostler.backends.kubernetes.backend import KubernetesBackend
from hostler.errors import UsageError
from hostler.remote.standalone import standalone
from hostler.spec.job import Resources
from hostler.spec.project import Fleet

GOLDEN = Path(__file__).parents[2] / "golden"
VERSIONS = ("1.33", "1.36")
LAUNCH = Launch(
    "s3://bucket/cifar",
    sweeps=("grid",),
    generation="gke/3",
    at=1_800_000_000.0,
    deadline=1_800_003_600.0,
    parcels=(("library/ab.zip", "ab"), ("wheels/cd.whl", "cd")),
    variables={"HOSTLER_BEAT": "5", "WANDB_API_KEY": "hush", "AWS_SECRET_ACCESS_KEY": "hushhush"},
    resources=Resources(cpus=4, memory=16 * 10**9, gpus=1),
)


def fleet(workers: int = 4, resources: Resources | None = None, **options: Any) -> Fleet:
    return Fleet(
        name="gke", backend="kubernetes", workers=workers, scope="cifar", resources=resources, options=options
    )


def check(*bodies: dict[str, Any]) -> None:
    for body in bodies:
        for version in VERSIONS:
            kubernetes_validate.validate(body, version, strict=True)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod runs first is a file of its own."""
    monkeypatch.setattr(manifest, "boot", lambda: "# boot.py\n")


FULL: dict[str, Any] = {
    "namespace": "train",
    "image": "registry.example.org/me/train:1",
    "pull": "IfNotPresent",
    "pull_secret": ["registry"],
    "node_selector": {"disk": "ssd"},
    "tolerations": [{"key": "team", "operator": "Equal", "value": True, "effect": "NoSchedule"}],
    "spot": True,
    "volumes": {
        "/data": "my-claim",
        "/mnt/ssd": {"host": "/mnt/ssd", "read_only": True},
        "/scratch": {"empty": "100GB"},
        "/dev/shm": {"memory": "8GB"},
    },
    "service_account": "trainer",
    "queue": "team-queue",
}


def test_the_plan_is_the_manifest_of_all_that_is_made(short: None) -> None:
    plan = KubernetesBackend().plan(fleet(**FULL), LAUNCH)
    assert plan.text == (GOLDEN / "kubernetes_plan.txt").read_text().rstrip("\n")
    assert plan.workers == 4
    [job] = yaml.safe_load_all(plan.text)
    check(job)


@pytest.mark.parametrize(
    ("own", "options", "said"),
    [
        (Resources(cpus=2, gpus=1), {}, "a pod has 2 CPUs, but a run takes 4 CPUs"),
        (
            Resources(cpus=4, memory=8 * 10**9, gpus=1),
            {},
            "a pod has 8GB of memory, but a run takes 16GB of memory",
        ),
        (Resources(cpus=2), {}, "a pod has 2 CPUs and 0 GPUs, but a run takes 4 CPUs and 1 GPU"),
        (None, {"gpus": 0}, "a pod has 0 GPUs, but a run takes 1 GPU"),
    ],
)
def test_pod_smaller_than_a_run_is_refused(own: Resources, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        KubernetesBackend().plan(fleet(resources=own, **options), LAUNCH)
    assert "raise `resources`" in error.value.hint


def test_paths_of_this_machine_stay_out_of_the_secret() -> None:
    paths = {"AWS_CA_BUNDLE": "/etc/ca.pem", "AWS_CONFIG_FILE": "~/.aws/config"}
    launch = replace(LAUNCH, variables={**LAUNCH.variables, **paths})
    made = manifest.manifest(fleet(), launch)
    assert set(made.hidden) == {"WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"}
    assert not any(value in json.dumps(made.job) for value in paths.values())


def test_a_store_on_a_claim_needs_no_bucket(short: None) -> None:
    launch = Launch(
        "/runs/my store", generation="gke/1", at=1_800_000_000.0, parcels=(("library/ab.zip", "ab"),)
    )
    plan = KubernetesBackend().plan(fleet(1, volumes={"/runs": "my-claim"}), launch)
    assert plan.text == (GOLDEN / "kubernetes_folder_plan.txt").read_text().rstrip("\n")
    check(*yaml.safe_load_all(plan.text))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gpus": 8, "gpu_resource": "amd.com/gpu"},
        {"spot": "aks"},
        {"user": 1000},
        {"spot": "eks", "secret": "keys"},
        {
            "volumes": [
                {"mount": "/nfs", "nfs": {"server": "s", "path": "/p"}},
                {"mount": "/k", "secret": "k"},
            ]
        },
        {
            "volumes": {
                "/c": {"config_map": "c"},
                "/e": {"empty": True},
                "/r": {"pvc": "x", "read_only": True},
            }
        },
    ],
)
def test_every_object_is_one_that_kubernetes_takes(options: dict[str, Any]) -> None:
    made = manifest.manifest(fleet(**options), LAUNCH)
    assert made.secret is not None
    check(made.job, made.secret)


def test_the_manifest_brings_the_very_text_of_boot() -> None:
    made = manifest.manifest(fleet(), LAUNCH)
    [first] = made.job["spec"]["template"]["spec"]["initContainers"]
    assert first["command"][2] == standalone("hostler.backends.kubernetes.boot")
    [again] = yaml.safe_load_all(text.of_launch(made))
    assert again == made.job


def test_no_secret_is_in_the_text_or_in_the_job() -> None:
    made = manifest.manifest(fleet(), LAUNCH)
    shown = text.of_launch(made)
    assert "hush" not in shown + json.dumps(made.job) + repr(KubernetesBackend().plan(fleet(), LAUNCH))
    assert made.hidden == {"WANDB_API_KEY": "hush", "AWS_SECRET_ACCESS_KEY": "hushhush"}
    assert "kubectl create secret generic hostler-cifar-gke-3 --from-literal=WANDB_API_KEY=…" in shown


def test_secret_by_hand_holds_a_key_files_content() -> None:
    variables = {"GOOGLE_APPLICATION_CREDENTIALS": "/home/me/my key.json"}
    launch = Launch("gs://runs/cifar", generation="gke/1", at=1_800_000_000.0, variables=variables)
    shown = text.of_launch(manifest.manifest(fleet(), launch))
    assert "--from-file=GOOGLE_SERVICE_ACCOUNT_KEY='/home/me/my key.json'" in shown
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in shown


@pytest.mark.parametrize("own", [{"service_account": "trainer"}, {"secret": "keys"}])
def test_pod_with_own_identity_or_secret_gets_no_keys(own: dict[str, Any]) -> None:
    assert dict(manifest.manifest(fleet(**own), LAUNCH).hidden) == {"WANDB_API_KEY": "hush"}


def test_failures_are_judged_in_this_order_store_machine_preemption() -> None:
    rules = manifest.manifest(fleet(), LAUNCH).job["spec"]["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in rules] == ["FailJob", "FailIndex", "Ignore"]
    assert [rule.get("onExitCodes", {}).get("values") for rule in rules] == [[2], [1], None]


def test_the_cluster_itself_ends_and_removes_the_job() -> None:
    spec = manifest.manifest(fleet(), LAUNCH).job["spec"]
    assert spec["activeDeadlineSeconds"] == 3600 and spec["ttlSecondsAfterFinished"] == 600
    free = manifest.manifest(fleet(deadline=7200.0), Launch("s3://b", at=5.0)).job["spec"]
    assert free["activeDeadlineSeconds"] == 7200


def test_no_run_has_privileges_or_a_token_of_the_cluster() -> None:
    pod = manifest.manifest(fleet(), LAUNCH).job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    for one in (*pod["initContainers"], *pod["containers"]):
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
    [tokens] = [one["name"] for one in pod["volumes"] if "serviceAccountToken" in json.dumps(one)]
    holders = [
        one["name"]
        for one in (*pod["initContainers"], *pod["containers"])
        if tokens in [mount["name"] for mount in one["volumeMounts"]]
    ]
    assert holders == ["bring"], "the first container alone, in which no code of a run is"


def test_pod_is_sized_by_its_run_and_worker_or_fleet() -> None:
    def worker(launch: Launch = LAUNCH, **given: Any) -> dict[str, Any]:
        made: dict[str, Any] = manifest.manifest(fleet(**given), launch).job
        found: dict[str, Any] = made["spec"]["template"]["spec"]["containers"][0]
        return found

    limits = worker()["resources"]["limits"]
    assert limits == {"memory": str(16 * 10**9 + (512 << 20)), "nvidia.com/gpu": "1"}
    assert worker()["command"][-4:] == ["--slots", "1", "--cpus", "4"]
    small = replace(LAUNCH, resources=Resources(cpus=0.5))
    own = worker(small, resources=Resources(cpus=0.5, memory=10**9))
    assert own["resources"] == {
        "requests": {"cpu": "500m", "memory": "1000000000"},
        "limits": {"memory": "1000000000"},
    }
    assert own["command"][-2:] == ["--cpus", "0.5"] and "--slots" not in own["command"]


@pytest.mark.parametrize(
    ("store", "options", "said"),
    [
        ("/home/me/runs", {}, "is not on a volume of its pods"),
        ("/home/me/runs", {"volumes": {"/home": {"empty": True}}}, "is not on a volume of its pods"),
        ("/home/me/runs", {"volumes": {"/home": {"claim": "c", "read_only": True}}}, "is not on a volume"),
        ("ssh://gpu1/runs", {}, "pods cannot use the store ssh://gpu1/runs"),
        ("memory:", {}, "pods cannot use the store memory:"),
    ],
)
def test_a_store_that_pods_would_not_reach_is_refused(store: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        KubernetesBackend().plan(fleet(**options), Launch(store))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"spot": "gkee"}, "did you mean 'gke'"),
        ({"tolerations": [{"kee": "x"}]}, "did you mean 'key'"),
        ({"volumes": {"data": "c"}}, "is not an absolute path"),
        ({"volumes": {"/hostler/x": "c"}}, "used by hostler itself"),
        ({"volumes": {"/d": {"clam": "c"}}}, "is not a kind of volume"),
        ({"volumes": {"/d": {"claim": "c", "host": "/d"}}}, "must have exactly one source"),
        ({"volumes": {"/d": {"empty": "much"}}}, "/d: "),
        ({"volumes": [{"claim": "c"}]}, "has no mount"),
        ({"volumes": {"/d": "c", "/d/": "e"}}, "/d is mounted twice"),
    ],
)
def test_keys_that_mean_nothing_are_refused_with_what_to_write(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        KubernetesBackend().plan(fleet(**options), LAUNCH)
    assert said in str(error.value)


def test_a_word_that_kubernetes_would_replace_stays_as_it_is() -> None:
    made = manifest.manifest(fleet(), Launch("s3://bucket/$(HOME)"))
    assert made.job["spec"]["template"]["spec"]["containers"][0]["command"][3] == "s3://bucket/$$(HOME)"


@pytest.mark.parametrize(
    ("who", "subject"),
    [
        (
            "me@example.org",
            {"kind": "User", "name": "me@example.org", "apiGroup": "rbac.authorization.k8s.io"},
        ),
        ("group:lab", {"kind": "Group", "name": "lab", "apiGroup": "rbac.authorization.k8s.io"}),
        ("serviceaccount:ci", {"kind": "ServiceAccount", "name": "ci", "namespace": "train"}),
        ("serviceaccount:ops/ci", {"kind": "ServiceAccount", "name": "ci", "namespace": "ops"}),
    ],
)
def test_the_role_is_namespaced_and_somebodys(who: str, subject: dict[str, str]) -> None:
    made = list(yaml.safe_load_all(KubernetesBackend().role(fleet(namespace="train"), who)))
    check(*made)
    assert [one["kind"] for one in made] == ["Role", "RoleBinding"] * 2
    assert made[1]["subjects"] == [subject]
    assert made[2]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert made[3]["subjects"] == [{"kind": "ServiceAccount", "name": "default", "namespace": "train"}]
    assert all(one["metadata"]["namespace"] == "train" for one in made)
    assert not any("*" in json.dumps(rule) for rule in made[0]["rules"])


def test_role_lets_nobody_read_secrets() -> None:
    rules = rbac.role("", "me")[0]["rules"]
    [verbs] = [rule["verbs"] for rule in rules if "secrets" in rule["resources"]]
    assert verbs == ["create", "delete"]  # a patch answers with all that the Secret holds


def test_every_right_that_is_asked_for_is_in_the_role() -> None:
    rules = {
        (r, v) for rule in rbac.role("", "me")[0]["rules"] for r in rule["resources"] for v in rule["verbs"]
    }
    assert {(resource, verb) for verb, _, resource in rbac.needs()} <= rules


def test_aks_role_label_of_the_service_account_is_not_ours() -> None:
    azure = Launch("az://runs/cifar", generation="gke/1", at=1_800_000_000.0, variables={"TOKEN": "hush"})
    made = manifest.manifest(fleet(service_account="trainer"), azure)
    labels = made.job["spec"]["template"]["metadata"]["labels"]
    assert labels["azure.workload.identity/use"] == "true"
    assert made.secret and made.secret["metadata"]["labels"] == made.owned
    assert made.owned.keys() == {key for key in labels if key.startswith("hostler-")}
    bare = manifest.manifest(fleet(), azure).job["spec"]["template"]["metadata"]["labels"]
    assert bare == made.owned
    check(made.job, made.secret)
