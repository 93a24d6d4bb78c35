"""The API itself: verbs, selectors, watches, patches, refusals; on the stand-in, or a real cluster."""

from __future__ import annotations

import base64
import copy
import threading
from typing import Any

import pytest
import yaml
from lightkube import Client, KubeConfig
from lightkube.codecs import from_dict
from lightkube.config.models import User
from lightkube.core.exceptions import ApiError
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Pod, Secret
from lightkube.resources.rbac_authorization_v1 import Role, RoleBinding
from lightkube.types import PatchType

from kube_world import Kube, Manifest, job, script, until


def config(name: str = "c", labels: dict[str, str] | None = None, **data: str) -> Manifest:
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def names(kube: Kube, **words: Any) -> list[str]:
    found = [str(one.metadata.name) for one in kube.client.list(ConfigMap, **words)]
    return sorted(name for name in found if name != "kube-root-ca.crt")


def changed(base: Manifest, path: str, value: object) -> Manifest:
    """A manifest with one field set, or taken away with None."""
    fresh = copy.deepcopy(base)
    at: Any = fresh
    *parents, last = path.split(".")
    for word in parents:
        at = at[int(word)] if word.isdigit() else at.setdefault(word, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return fresh


def test_missing_object_is_404_in_the_words_of_kubernetes(kube: Kube) -> None:
    with pytest.raises(ApiError) as caught:
        kube.job("none")
    status = caught.value.status
    assert (status.code, status.reason) == (404, "NotFound")
    assert status.message == 'jobs.batch "none" not found'
    assert (status.details.name, status.details.kind, status.details.group) == ("none", "jobs", "batch")


def test_what_exists_is_409_already_exists(kube: Kube) -> None:
    kube.create(job(suspend=True))
    status = kube.refused(job(suspend=True)).status
    assert (status.code, status.reason, status.message) == (
        409,
        "AlreadyExists",
        'jobs.batch "j" already exists',
    )


@pytest.mark.parametrize(
    "question", ["pods?limit=many", "pods?watch=true&timeoutSeconds=x", "pods?labelSelector=%28"]
)
@pytest.mark.needs("kubectl")
def test_a_question_that_cannot_be_read_is_400(kube: Kube, question: str) -> None:
    said = kube.kubectl("get", "--raw", f"/api/v1/namespaces/{kube.namespace}/{question}", fine=False)
    assert "BadRequest" in said


def test_a_namespace_that_does_not_exist_is_404(kube: Kube) -> None:
    with pytest.raises(ApiError) as caught:
        kube.client.create(from_dict(job()), namespace="nowhere")
    assert (caught.value.status.code, caught.value.status.message) == (404, 'namespaces "nowhere" not found')


def test_a_token_that_is_none_is_401(kube: Kube) -> None:
    given = KubeConfig.from_file(str(kube.config))
    users = dict.fromkeys(given.users, User(token="wrong"))
    known = {"clusters": given.clusters, "contexts": given.contexts, "current_context": given.current_context}
    stranger = Client(config=KubeConfig(users=users, **known), namespace=kube.namespace)
    with pytest.raises(ApiError) as caught:
        list(stranger.list(Pod))
    assert (caught.value.status.code, caught.value.status.reason) == (401, "Unauthorized")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.completions", None, "spec.completions: Required value: when completion mode is Indexed"),
        ("spec.completionMode", "Sorted", 'spec.completionMode: Unsupported value: "Sorted"'),
        ("spec.parallelism", -1, "spec.parallelism: Invalid value: -1"),
        ("spec.template.spec.restartPolicy", None, "spec.template.spec.restartPolicy: Required value"),
        ("spec.template.spec.restartPolicy", "Always", "spec.template.spec.restartPolicy: "),
        ("spec.template.spec.containers", [], "spec.template.spec.containers: Required value"),
        ("spec.template.spec.containers.0.image", None, "containers[0].image: Required value"),
        ("spec.template.spec.containers.0.name", "Main", "containers[0].name: Invalid value"),
        ("spec.template.spec.containers.0.imagePullPolicy", "Often", "imagePullPolicy: Unsupported value"),
        (
            "spec.template.spec.containers.0.volumeMounts",
            [{"name": "v", "mountPath": "/v"}],
            'volumeMounts[0].name: Not found: "v"',
        ),
        (
            "spec.template.spec.containers.0.resources",
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            "must be less than or equal to cpu limit",
        ),
        ("spec.template.spec.tolerations", [{"key": "a", "operator": "Is"}], "tolerations[0].operator"),
        ("spec.maxFailedIndexes", 1, "spec.backoffLimitPerIndex: Required value"),
        (
            "spec.podFailurePolicy",
            {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]},
            "backoffLimitPerIndex",
        ),
        (
            "spec.podFailurePolicy",
            {"rules": [{"action": "Stop", "onExitCodes": {"operator": "In", "values": [1]}}]},
            'rules[0].action: Unsupported value: "Stop"',
        ),
        (
            "spec.podFailurePolicy",
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]},
            "must not be 0",
        ),
        ("metadata.name", "Upper_Case", "a lowercase RFC 1123 subdomain must consist of"),
        ("metadata.name", "x" * 63, "metadata.name"),
        ("metadata.labels", {"a": "not valid!"}, "a valid label must be"),
    ],
)
def test_invalid_job_is_422_and_names_the_field(kube: Kube, path: str, value: object, said: str) -> None:
    status = kube.refused(changed(job(), path, value)).status
    assert (status.code, status.reason) == (422, "Invalid"), status.message
    assert said in status.message
    assert kube.pods() == [] and not list(kube.client.list(Job))


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.parralelism", 2, 'unknown field "spec.parralelism"'),
        (
            "spec.template.spec.containers.0.comand",
            ["x"],
            'unknown field "spec.template.spec.containers[0].comand"',
        ),
        ("spec.parallelism", "two", "spec.parallelism"),
    ],
)
def test_misspelt_field_or_wrong_type_is_400_on_apply(
    kube: Kube, path: str, value: object, said: str
) -> None:
    text = yaml.safe_dump(changed(job(), path, value))
    assert said in kube.kubectl("apply", "-f", "-", given=text, fine=False)
    assert not list(kube.client.list(Job))


def test_labels_select_by_value_by_set_and_by_being_there(kube: Kube) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        kube.create(config(name, {"colour": colour}))
    kube.create(config("d"))
    assert names(kube, labels={"colour": "red"}) == ["a"]
    chosen = {
        "colour in (red,blue)": ["a", "b"],
        "colour notin (red)": ["b", "d"],
        "colour!=red": ["b", "d"],
        "colour": ["a", "b"],
        "!colour": ["d"],
        "colour=red,colour!=blue": ["a"],
    }
    for selector, expected in chosen.items():
        lines = kube.kubectl("get", "configmaps", "-l", selector, "-o", "name").split()
        assert sorted(set(lines) - {"configmap/kube-root-ca.crt"}) == [f"configmap/{one}" for one in expected]


def test_fields_select_pods_by_name_phase_and_node(kube: Kube) -> None:
    kube.create(job("exit 0"))
    kube.ended()
    (one,) = kube.pods()
    name = one["metadata"]["name"]
    for fields in (
        {"metadata.name": name},
        {"status.phase": "Succeeded"},
        {"spec.nodeName": one["spec"]["nodeName"]},
    ):
        assert name in [str(found.metadata.name) for found in kube.client.list(Pod, fields=fields)]
    assert not list(kube.client.list(Pod, fields={"status.phase": "Running"}))


def test_long_lists_come_in_chunks(kube: Kube) -> None:
    for number in range(5):
        kube.create(config(f"c{number}", {"mine": "yes"}))
    assert names(kube, labels={"mine": "yes"}, chunk_size=2) == [f"c{number}" for number in range(5)]


def test_a_watch_tells_of_all_that_happens_after_a_version(kube: Kube) -> None:
    kube.create(config("before", {"mine": "yes"}))
    listed = kube.client.list(ConfigMap, labels={"mine": "yes"})
    assert [one.metadata.name for one in listed] == ["before"]
    kube.create(config("c", {"mine": "yes"}))
    kube.create(config("other"))
    kube.client.patch(ConfigMap, "c", {"data": {"a": "1"}}, patch_type=PatchType.MERGE)
    kube.client.patch(ConfigMap, "c", {"metadata": {"labels": {"mine": None}}}, patch_type=PatchType.MERGE)
    heard = []
    for kind, one in kube.client.watch(
        ConfigMap, labels={"mine": "yes"}, resource_version=listed.resourceVersion
    ):
        heard.append((kind, one.metadata.name))
        if kind == "DELETED":
            break
    assert heard == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "c")]


def test_a_watch_without_a_version_begins_with_what_is_there(kube: Kube) -> None:
    kube.create(config("c", {"mine": "yes"}))
    kind, one = next(iter(kube.client.watch(ConfigMap, labels={"mine": "yes"})))
    assert (kind, one.metadata.name) == ("ADDED", "c")


def test_watch_streams_changes_as_they_come_and_ends_in_time(kube: Kube) -> None:
    heard: list[tuple[str, str]] = []

    def listen() -> None:
        for kind, one in kube.client.watch(ConfigMap, labels={"mine": "yes"}, server_timeout=30):
            heard.append((kind, str(one.metadata.name)))
            if kind == "DELETED":
                return

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    kube.create(config("c", {"mine": "yes"}))
    until(lambda: heard == [("ADDED", "c")], "the first word", lambda: heard)
    kube.client.delete(ConfigMap, "c")
    listening.join(60)
    assert heard == [("ADDED", "c"), ("DELETED", "c")]


def test_an_update_of_an_old_version_is_a_conflict(kube: Kube) -> None:
    kube.create(config("c", a="1"))
    mine, theirs = kube.client.get(ConfigMap, "c"), kube.client.get(ConfigMap, "c")
    theirs.data["a"] = "2"
    kube.client.replace(theirs)
    mine.data["a"] = "3"
    with pytest.raises(ApiError, match="the object has been modified") as caught:
        kube.client.replace(mine)
    assert (caught.value.status.code, caught.value.status.reason) == (409, "Conflict")


def test_patches_merge_or_follow_a_list_of_operations(kube: Kube) -> None:
    kube.create(config("c", a="1", b="2"))
    kube.client.patch(ConfigMap, "c", {"data": {"a": None, "d": "4"}}, patch_type=PatchType.MERGE)
    assert kube.client.get(ConfigMap, "c").data == {"b": "2", "d": "4"}
    kube.client.patch(
        ConfigMap, "c", [{"op": "replace", "path": "/data/b", "value": "3"}], patch_type=PatchType.JSON
    )
    assert kube.client.get(ConfigMap, "c").data == {"b": "3", "d": "4"}


def test_a_strategic_patch_merges_containers_by_their_names(kube: Kube) -> None:
    kube.create(job("sleep 60", suspend=True))
    same = {"spec": {"parallelism": 0, "template": {"spec": {"containers": [{"name": "main"}]}}}}
    kube.client.patch(Job, "j", same, patch_type=PatchType.STRATEGIC)
    spec = kube.job()["spec"]
    assert spec["parallelism"] == 0 and spec["template"]["spec"]["containers"][0]["command"][-1] == "sleep 60"


def test_what_is_applied_again_without_a_field_loses_it(kube: Kube) -> None:
    def apply(manager: str, force: bool = False, **data: str) -> dict[str, str]:
        thing = from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
        return dict(kube.client.apply(thing, field_manager=manager, force=force).data or {})

    assert apply("one", a="1", b="2") == {"a": "1", "b": "2"}
    assert apply("one", a="1") == {"a": "1"}
    assert apply("two", d="4") == {"a": "1", "d": "4"}
    with pytest.raises(ApiError, match='conflict with "one"') as caught:
        apply("two", a="9", d="4")
    assert (caught.value.status.code, caught.value.status.reason) == (409, "Conflict")
    assert apply("two", force=True, a="9", d="4") == {"a": "9", "d": "4"}


@pytest.mark.needs("kubectl")
def test_kubectl_applies_on_the_server_and_by_its_own_merge(kube: Kube) -> None:
    first, second = (yaml.safe_dump(config("c", a="1", b="2")), yaml.safe_dump(config("c", a="1")))
    kube.kubectl("apply", "-f", "-", given=first)
    assert "unchanged" in kube.kubectl("apply", "-f", "-", given=first)
    assert "configured" in kube.kubectl("apply", "-f", "-", given=second)
    assert kube.client.get(ConfigMap, "c").data == {"a": "1"}
    kube.kubectl("apply", "--server-side", "-f", "-", given=yaml.safe_dump(config("e", x="1")))
    assert kube.client.get(ConfigMap, "e").data == {"x": "1"}


@pytest.mark.needs("kubectl")
def test_a_changed_job_applied_again_is_refused_as_immutable(kube: Kube) -> None:
    kube.kubectl("apply", "-f", "-", given=yaml.safe_dump(job("sleep 60", suspend=True)))
    said = kube.kubectl("apply", "-f", "-", given=yaml.safe_dump(job("sleep 61", suspend=True)), fine=False)
    assert 'The Job "j" is invalid: spec.template: Invalid value' in said and "field is immutable" in said


def test_a_dry_run_checks_and_leaves_nothing(kube: Kube) -> None:
    dry = Client(config=KubeConfig.from_file(str(kube.config)), namespace=kube.namespace, dry_run=True)
    made = dry.create(from_dict(job()))
    assert made.metadata.uid and not list(kube.client.list(Job))


@pytest.mark.needs("kubectl")
def test_many_are_deleted_at_once_by_their_labels(kube: Kube) -> None:
    for name in ("a", "b", "d"):
        kube.create(config(name, {"mine": "yes"} if name != "d" else {}))
    kube.kubectl(
        "delete", "--raw", f"/api/v1/namespaces/{kube.namespace}/configmaps?labelSelector=mine%3Dyes"
    )
    until(lambda: names(kube) == ["d"], "the end of two", lambda: names(kube))


def test_a_name_can_be_made_up(kube: Kube) -> None:
    given = job(suspend=True)
    given["metadata"] = {"generateName": "fleet-"}
    made = kube.create(given)["metadata"]["name"]
    assert made.startswith("fleet-") and len(made) == len("fleet-xxxxx")


@pytest.mark.needs("kubectl")
def test_kubectl_may_ask_too(kube: Kube) -> None:
    assert kube.kubectl("auth", "can-i", "create", "jobs.batch") == "yes\n"


@pytest.mark.needs("kubectl")
def test_kubectl_creates_secrets_accounts_and_rights_from_words(kube: Kube) -> None:
    kube.kubectl("create", "secret", "generic", "s", "--from-literal=token=hush", "--from-literal=user=me")
    held = {key: base64.b64decode(value) for key, value in kube.client.get(Secret, "s").data.items()}
    assert held == {"token": b"hush", "user": b"me"}
    kube.kubectl("create", "configmap", "c", "--from-literal=a=1")
    assert kube.client.get(ConfigMap, "c").data == {"a": "1"}
    kube.kubectl("create", "serviceaccount", "launcher")
    kube.kubectl("create", "role", "r", "--verb=get,list", "--resource=pods,pods/log")
    who = f"--serviceaccount={kube.namespace}:launcher"
    kube.kubectl("create", "rolebinding", "r", "--role=r", who)
    (rule,) = kube.client.get(Role, "r").rules
    assert (sorted(rule.verbs), sorted(rule.resources), rule.apiGroups) == (
        ["get", "list"],
        ["pods", "pods/log"],
        [""],
    )
    bound = kube.client.get(RoleBinding, "r")
    assert (bound.roleRef.name, bound.subjects[0].name) == ("r", "launcher")


def test_one_may_ask_what_one_may_do(kube: Kube) -> None:
    asked = {"verb": "create", "group": "batch", "resource": "jobs", "namespace": kube.namespace}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}}
    review = from_dict({**body, "spec": {"resourceAttributes": asked}})
    assert isinstance(review, SelfSubjectAccessReview)
    assert kube.client.create(review).status.allowed is True


def test_missing_service_account_blocks_pods_and_an_event_says_so(
    kube: Kube,
) -> None:
    kube.create(job("true", pod={"serviceAccountName": "ghost"}))
    until(
        lambda: "FailedCreate" in kube.kubectl("get", "events"),
        "the event",
        lambda: kube.kubectl("get", "events"),
    )
    assert 'serviceaccount "ghost" not found' in kube.kubectl("get", "events")
    assert kube.pods() == []


def test_defaults_are_filled_in(kube: Kube) -> None:
    made = kube.create(job(script("true", resources={"limits": {"cpu": "1"}}), suspend=True))["spec"]
    assert (made["backoffLimit"], made["podReplacementPolicy"]) == (6, "TerminatingOrFailed")
    container = made["template"]["spec"]["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert made["selector"]["matchLabels"].keys() == {"batch.kubernetes.io/controller-uid"}
    assert made["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
