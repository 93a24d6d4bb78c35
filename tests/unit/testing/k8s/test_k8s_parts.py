"""The pure parts of the stand-in for Kubernetes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hostler.emulators.k8s.api import changing, patching, selectors
from hostler.emulators.k8s.api.refusal import Refusal
from hostler.emulators.k8s.api.server import route
from hostler.emulators.k8s.controllers import jobtally, policy, scheduler
from hostler.emulators.k8s.node import environment
from hostler.emulators.k8s.node.network import Network
from hostler.emulators.k8s.pace import Pace
from hostler.emulators.k8s.resources import CONFIG_MAPS
from hostler.emulators.k8s.rules.quantity import amount
from hostler.emulators.k8s.storage import Obj, Storage
from hostler.emulators.k8s.world import Memory

INDEX = "batch.kubernetes.io/job-completion-index"


def job(count: int = 2, **spec: Any) -> Obj:
    given = {"completionMode": "Indexed", "completions": count, "parallelism": count, "backoffLimit": 6}
    given |= {"podReplacementPolicy": "Failed"}
    return {"metadata": {"name": "j", "uid": "u"}, "spec": {**given, **spec}, "status": {}}


def ended(index: int, code: int, *conditions: str) -> Obj:
    status = {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}],
        "conditions": [{"type": kind, "status": "True"} for kind in conditions],
    }
    meta = {"name": f"j-{index}", "namespace": "n", "annotations": {INDEX: str(index)}}
    meta["finalizers"] = ["batch.kubernetes.io/job-tracking"]  # type: ignore[assignment]
    return {"metadata": meta, "spec": {}, "status": status}


def config(name: str, **data: str) -> Obj:
    meta = {"name": name, "namespace": "n", "uid": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", set()), ("0", {0}), ("0,1", {0, 1}), ("0-2", {0, 1, 2}), ("1,3-5,7,8", {1, 3, 4, 5, 7, 8})],
)
def test_indexes_are_written_as_ranges_and_read_back(text: str, numbers: set[int]) -> None:
    assert jobtally.write(numbers) == text
    assert jobtally.parse(text) == numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", 0.5),
        ("2", 2),
        (3, 3),
        ("1.5", 1.5),
        ("1Ki", 1024),
        ("2Gi", 2 << 30),
        ("1M", 10**6),
        ("1e3", 1000),
    ],
)
def test_amounts_are_numbers_with_units(text: object, value: float) -> None:
    assert float(amount(text)) == value


@pytest.mark.parametrize("text", ["", "much", "1 Gi", "1KiB", "--1"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        amount(text)


def test_rules_are_tried_in_order_on_exit_codes_and_conditions() -> None:
    rules = {
        "rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3], "containerName": "other"}},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3, 4]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [9]}},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [9]}},
        ]
    }
    found = [policy.judge(rules, ended(0, code)).action for code in (3, 4, 5, 9)]
    assert found == ["FailIndex", "FailIndex", "Count", "FailJob"]
    assert policy.judge(rules, ended(0, 5, "DisruptionTarget")).action == "Ignore"
    assert policy.judge(rules, ended(0, 3, "DisruptionTarget")).action == "FailIndex"
    assert policy.judge(None, ended(0, 3)).action == "Count"


def test_ends_are_counted_by_index_and_success_is_not_failure() -> None:
    memory, one = Memory(), job(3, backoffLimitPerIndex=1)
    assert jobtally.count(one, [ended(0, 0), ended(1, 1)], memory, 5.0) is None
    assert one["status"] == {"succeeded": 1, "completedIndexes": "0", "failed": 1, "failedIndexes": ""}
    jobtally.count(one, [ended(1, 1)], memory, 6.0)
    assert one["status"]["failedIndexes"] == "1"
    assert jobtally.missing(one, [], 3) == [2]
    jobtally.count(one, [ended(2, 0)], memory, 7.0)
    assert jobtally.judge(one, [], memory, Pace(), 7.0) == jobtally.Outcome(
        False, "FailedIndexes", "Job has failed indexes"
    )


def test_index_waits_twice_as_long_after_each_own_failure() -> None:
    pace, memory, one = Pace(backoff=10, backoff_max=35), Memory(), job(2, backoffLimitPerIndex=9)
    moments = []
    for now in (100.0, 200.0, 300.0):
        jobtally.count(one, [ended(0, 1)], memory, now)
        moments.append(jobtally.backed_off(one, memory, pace, 0))
    assert moments == [110.0, 220.0, 335.0]
    assert jobtally.backed_off(one, memory, pace, 1) == 0.0


def test_deadline_counts_from_the_start_at_the_clusters_pace() -> None:
    one, memory = job(1, activeDeadlineSeconds=100), Memory(began=50.0)
    assert jobtally.deadline(one, memory, Pace(scale=10)) == 60.0
    assert jobtally.judge(one, [], memory, Pace(scale=10), 59.0) is None
    outcome = jobtally.judge(one, [], memory, Pace(scale=10), 60.0)
    assert outcome is not None and outcome.reason == "DeadlineExceeded"


def node(name: str, cpu: str = "4", **spec: Any) -> Obj:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return {"metadata": {"name": name, "labels": {"name": name}}, "spec": spec, "status": status}


def pod(cpu: str = "1", on: str = "", **spec: Any) -> Obj:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    given = {"containers": [container], "nodeName": on, **spec}
    return {"metadata": {"name": "p"}, "spec": given, "status": {"phase": "Running" if on else "Pending"}}


def test_a_pod_goes_to_the_emptiest_node_that_has_room() -> None:
    nodes = [node("a"), node("b"), node("full", cpu="1")]
    others = [pod("2", "a"), pod("1", "full")]
    assert scheduler.choose(pod("1"), nodes, others) == ("b", "")
    assert scheduler.choose(pod("1", nodeSelector={"name": "a"}), nodes, others) == ("a", "")


def test_what_has_ended_takes_no_room() -> None:
    over = pod("4", "a")
    over["status"]["phase"] = "Succeeded"
    assert scheduler.choose(pod("4"), [node("a")], [over]) == ("a", "")


def test_reasons_are_counted_by_node_as_the_scheduler_lists_them() -> None:
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = [node("a"), node("b"), node("c", taints=[taint]), node("d", unschedulable=True)]
    assert scheduler.choose(pod("3"), nodes, [pod("3", "a"), pod("3", "b")]) == (
        "",
        "0/4 nodes are available: 1 node(s) had untolerated taint {dedicated: x}, "
        "1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/4 nodes are available: "
        "2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
    )
    assert scheduler.choose(pod(), [], [])[1] == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "l", "operator": "Exists"}, False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration: dict[str, str], fits: bool) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert scheduler.tolerates(pod(tolerations=[toleration]), taint) is fits


def test_node_affinity_is_by_expressions_any_term_will_do() -> None:
    def with_terms(*terms: list[dict[str, Any]]) -> Obj:
        listed = [{"matchExpressions": term} for term in terms]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
        return pod(affinity={"nodeAffinity": required})

    nodes = [node("a"), node("b")]
    wanted = {"key": "name", "operator": "In", "values": ["b"]}
    impossible = {"key": "name", "operator": "DoesNotExist"}
    assert scheduler.choose(with_terms([wanted]), nodes, []) == ("b", "")
    assert scheduler.choose(with_terms([impossible], [wanted]), nodes, []) == ("b", "")
    assert scheduler.choose(with_terms([impossible, wanted]), nodes, [])[0] == ""


def test_variables_are_expanded_unless_escaped_or_unknown() -> None:
    assert environment.expand("$(A)-$$(A)-$(B)-$A", {"A": "1"}) == "1-$(A)-$(B)-$A"


def test_a_merge_patch_takes_away_what_is_null() -> None:
    assert patching.merge({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None}, "e": [1]}) == {
        "a": 1,
        "b": {"d": 3},
        "e": [1],
    }


def test_a_strategic_patch_merges_named_lists_and_replaces_others() -> None:
    target = {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "command": ["x", "y"]}
    patch = {
        "containers": [{"name": "a", "image": "2"}, {"name": "c"}, {"name": "b", "$patch": "delete"}],
        "command": ["z"],
        "$setElementOrder/containers": [{"name": "a"}, {"name": "c"}],
    }
    before = copy.deepcopy(target)
    assert patching.strategic(target, patch) == {
        "containers": [{"name": "a", "image": "2"}, {"name": "c"}],
        "command": ["z"],
    }
    assert target == before


def test_patch_changes_lists_and_mappings_and_failed_test_refuses_all() -> None:
    target = {"a": [1, 2], "b/c": 1}
    done = patching.operations(
        target,
        [
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/b~1c", "value": 2},
        ],
    )
    assert done == {"a": [2, 3], "b/c": 2}
    with pytest.raises(Refusal, match="testing /a/0 failed"):
        patching.operations(target, [{"op": "test", "path": "/a/0", "value": 9}])


def test_what_a_manager_leaves_out_goes_unless_another_wants_it() -> None:
    current = config("c", a="1", b="2", d="3")
    before, wanted, other = ({"data": data} for data in ({"a": "1", "b": "2"}, {"a": "1"}, {"b": "2"}))
    assert changing.apply(current, before, wanted, [])["data"] == {"a": "1", "d": "3"}
    assert changing.apply(current, before, wanted, [other])["data"] == {"a": "1", "b": "2", "d": "3"}
    assert changing.conflicts({"two": {"data": {"a": "9"}}}, "one", wanted) == [("two", ".data.a")]
    assert changing.conflicts({"two": {"data": {"a": "1"}}}, "one", wanted) == []


def test_a_selector_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(Refusal, match="unable to parse requirement"):
        selectors.chosen({"labelSelector": "a in b"})


def test_versions_grow_and_what_does_not_differ_is_no_change() -> None:
    storage = Storage()
    with storage.lock:
        first = storage.put(config("c", a="1"))
        version = storage.version
        assert storage.put(config("c", a="1")) is first and storage.version == version
        storage.put(config("c", a="2"))
        storage.remove(storage.all(CONFIG_MAPS)[0])
        told = [(bool(one.old), bool(one.new)) for one in storage.since(version)]
    assert told == [(True, True), (True, False)]


def test_a_past_that_was_forgotten_cannot_be_asked_for() -> None:
    storage = Storage(history=1)
    with storage.lock:
        for value in "123":
            storage.put(config("c", a=value))
        assert len(storage.since(storage.version - 1)) == 1
        with pytest.raises(Refusal, match="too old resource version: 1"):
            storage.since(1)


def test_pod_addresses_are_unique_and_reused_when_given_back() -> None:
    network = Network(0x9A01)
    taken = [network.take() for _ in range(250)]
    assert len(set(taken)) == 250 and taken[0] == "127.154.1.1" and network.take() is None
    network.give_back("127.154.1.7")
    assert network.take() == "127.154.1.7"


@pytest.mark.parametrize(
    ("method", "path", "verb", "sub"),
    [
        ("GET", "/apis/batch/v1/namespaces/n/jobs", "list", ""),
        ("GET", "/apis/batch/v1/jobs", "list", ""),
        ("GET", "/apis/batch/v1/namespaces/n/jobs/j", "get", ""),
        ("DELETE", "/apis/batch/v1/namespaces/n/jobs", "deletecollection", ""),
        ("PUT", "/apis/batch/v1/namespaces/n/jobs/j/status", "update", "status"),
        ("POST", "/api/v1/namespaces/n/pods/p/eviction", "create", "eviction"),
        ("GET", "/api/v1/namespaces/n/pods/p/log", "get", "log"),
        ("GET", "/api/v1/namespaces/n", "get", ""),
    ],
)
def test_a_path_and_a_method_are_a_verb(method: str, path: str, verb: str, sub: str) -> None:
    found = route(method, path, {})
    assert found is not None and (found.verb, found.sub) == (verb, sub)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/n/gadgets", "/api/v1/namespaces/n/pods/p/shape"])
def test_a_path_that_leads_nowhere_is_404(path: str) -> None:
    with pytest.raises(Refusal, match="could not find the requested resource"):
        route("GET", path, {})
