"""Pods: environment, volumes, init containers, addresses, ends, logs; on the stand-in or a real cluster."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Pod

from kube_world import IMAGE, Kube, Manifest, job, pod, script, until

SLEEP = "trap 'exit 143' TERM; echo up; while true; do sleep 0.05; done"


def secret(name: str = "s", **data: str) -> Manifest:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def config(name: str = "c", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_variables_are_plain_or_from_the_pod_and_expand_others(kube: Kube) -> None:
    fields = {
        "NAME": "metadata.name",
        "SPACE": "metadata.namespace",
        "IP": "status.podIP",
        "AT": "spec.nodeName",
    }
    env: list[dict[str, Any]] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()
    ]
    env += [{"name": "BOTH", "value": "$(NAME)/$(SPACE) $$(NAME) $(NONE)"}]
    text = 'echo "$BOTH"; echo "$IP"; echo "$AT"; echo "$0"'
    said = kube.output({"name": "main", "image": IMAGE, "command": ["sh", "-c", text, "$(NAME)"], "env": env})
    both, address, node, word = said.splitlines()
    assert (both, word) == (f"p/{kube.namespace} $(NAME) $(NONE)", "p")
    status = kube.pod("p")
    assert (address, node) == (status["status"]["podIP"], status["spec"]["nodeName"])


def test_variables_come_from_secrets_and_config_maps_one_or_all(kube: Kube) -> None:
    kube.create(secret(token="hush"))
    kube.create(config(COLOUR="blue", SIZE="3"))
    env = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
        {"name": "SIZED", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "SIZE"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": True}}},
    ]
    whole = [{"prefix": "C_", "configMapRef": {"name": "c"}}]
    text = 'echo "$TOKEN $SIZED $C_COLOUR ${NONE-unset}"'
    assert kube.output(script(text, env=env, envFrom=whole)) == "hush 3 blue unset\n"


def test_container_waits_for_a_missing_secret_and_says_so(kube: Kube) -> None:
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}]
    kube.create(pod(script('echo "$TOKEN"', env=env)))

    def waiting() -> Manifest:
        states = kube.pod("p")["status"].get("containerStatuses") or [{}]
        found: Manifest = states[0].get("state", {}).get("waiting") or {}
        return found

    until(
        lambda: waiting().get("reason") == "CreateContainerConfigError", "the reason", lambda: kube.pod("p")
    )
    assert 'secret "s" not found' in waiting()["message"]
    kube.create(secret(token="late"))
    assert kube.over()["status"]["phase"] == "Succeeded"
    assert kube.log("p") == "late\n"


def test_volumes_are_where_the_manifest_says_even_without_that_path(kube: Kube) -> None:
    kube.create(secret(key="hush"))
    kube.create(config(**{"a.txt": "text"}))
    volumes = [
        {"name": "e", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "s", "items": [{"key": "key", "path": "deep/k"}]}},
        {"name": "c", "configMap": {"name": "c"}},
    ]
    mounts = [
        {"name": "e", "mountPath": "/hostler"},
        {"name": "s", "mountPath": "/etc/brand/new/secret", "readOnly": True},
        {"name": "c", "mountPath": "/usr/share/one.txt", "subPath": "a.txt"},
    ]
    text = (
        "echo x > /hostler/f; cat /etc/brand/new/secret/deep/k /usr/share/one.txt /hostler/f; ls /usr/bin/env"
    )
    assert kube.output(script(text, volumeMounts=mounts), volumes=volumes) == "hushtextx\n/usr/bin/env\n"


def test_a_read_only_mount_cannot_be_written(kube: Kube) -> None:
    mounts = [{"name": "e", "mountPath": "/data", "readOnly": True}]
    text = "touch /data/f 2>/dev/null || echo refused"
    assert (
        kube.output(script(text, volumeMounts=mounts), volumes=[{"name": "e", "emptyDir": {}}]) == "refused\n"
    )


def test_init_containers_run_one_after_another_and_share_volumes(kube: Kube) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    first = [
        script("echo 1 >> /v/f", volumeMounts=mounts) | {"name": "one"},
        script("echo 2 >> /v/f", volumeMounts=mounts) | {"name": "two"},
    ]
    volumes = [{"name": "v", "emptyDir": {}}]
    assert (
        kube.output(script("cat /v/f", volumeMounts=mounts), initContainers=first, volumes=volumes)
        == "1\n2\n"
    )
    states = kube.pod("p")["status"]["initContainerStatuses"]
    assert [one["state"]["terminated"]["reason"] for one in states] == ["Completed", "Completed"]


def test_failed_init_container_fails_the_pod_before_anything_else_runs(kube: Kube) -> None:
    kube.create(pod("echo never", initContainers=[script("exit 6") | {"name": "one"}]))
    found = kube.over()["status"]
    assert found["phase"] == "Failed"
    assert found["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 6
    assert "waiting" in found["containerStatuses"][0]["state"]


def test_failed_init_container_is_retried_with_restart_policy_on_failure(kube: Kube) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    text = "test -e /v/f && exit 0; touch /v/f; exit 1"
    first = [script(text, volumeMounts=mounts) | {"name": "one"}]
    volumes = [{"name": "v", "emptyDir": {}}]
    kube.create(pod("echo done", initContainers=first, volumes=volumes, restartPolicy="OnFailure"))
    assert kube.over()["status"]["phase"] == "Succeeded"


def test_sidecar_runs_beside_the_other_containers_and_ends_after_them(kube: Kube) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    beside = "trap 'exit 0' TERM; echo here > /v/f; while true; do sleep 0.05; done"
    first = [script(beside, volumeMounts=mounts) | {"name": "beside", "restartPolicy": "Always"}]
    volumes = [{"name": "v", "emptyDir": {}}]
    text = "until test -s /v/f; do sleep 0.05; done; cat /v/f"
    assert kube.output(script(text, volumeMounts=mounts), initContainers=first, volumes=volumes) == "here\n"
    assert "terminated" in kube.pod("p")["status"]["initContainerStatuses"][0]["state"]


def test_files_and_variables_may_tell_of_the_pod_itself(kube: Kube) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    volumes = [{"name": "i", "projected": {"sources": [{"downwardAPI": {"items": items}}]}}]
    source = {"resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}}
    one = script(
        "echo $MEMORY; cat /info/labels",
        env=[{"name": "MEMORY", "valueFrom": source}],
        volumeMounts=[{"name": "i", "mountPath": "/info"}],
        resources={"limits": {"memory": "64Mi"}},
    )
    given = pod(one, volumes=volumes)
    given["metadata"]["labels"] = {"colour": "blue"}
    kube.create(given)
    kube.over()
    assert kube.log("p").split() == ["64", 'colour="blue"']


@pytest.mark.parametrize(
    ("text", "code"), [("exit 0", 0), ("exit 42", 42), ("sleep 99 & kill -9 $!; wait $!", 137)]
)
def test_exit_codes_are_told(kube: Kube, text: str, code: int) -> None:
    kube.create(pod(text))
    found = kube.over()["status"]
    assert found["phase"] == ("Failed" if code else "Succeeded")
    state = found["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (code, "Error" if code else "Completed")


def test_a_program_that_is_not_there_is_a_start_error(kube: Kube) -> None:
    kube.create(pod({"name": "main", "image": IMAGE, "command": ["no-such-program"]}))
    state = kube.over()["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert 'exec: "no-such-program": executable file not found in $PATH' in state["message"]


def test_termination_message_comes_from_its_file_or_from_the_log(kube: Kube) -> None:
    kube.create(pod("echo of course > /dev/termination-log; exit 3"))
    kube.create(pod(script("echo oh no; exit 3", terminationMessagePolicy="FallbackToLogsOnError"), name="q"))
    said = [
        kube.over(name)["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
        for name in ("p", "q")
    ]
    assert said == ["of course\n", "oh no\n"]


def test_process_1_without_a_handler_is_killed_after_its_grace(kube: Kube) -> None:
    kube.create(pod({"name": "main", "image": IMAGE, "command": ["sleep", "1000"]}))
    until(lambda: kube.pod("p")["status"]["phase"] == "Running", "a running pod", lambda: kube.pod("p"))
    ends: list[int] = []
    kube.client.delete(Pod, "p")
    for kind, one in kube.client.watch(Pod, fields={"metadata.name": "p"}):
        state = (one.status.containerStatuses or [None])[0]
        if state is not None and state.state.terminated:
            ends.append(state.state.terminated.exitCode)
        if kind == "DELETED":
            break
    assert ends[-1] == 137


def test_what_a_process_leaves_behind_dies_with_its_container(kube: Kube) -> None:
    kube.create(pod("(setsid sleep 1000 >/dev/null 2>&1 &); sleep 0.1; echo over"))
    assert kube.over()["status"]["phase"] == "Succeeded"
    assert kube.log("p") == "over\n"


def test_pods_reach_each_other_by_their_addresses(kube: Kube) -> None:
    server = (
        "import socket, os; s = socket.create_server((os.environ['IP'], 7000)); print('up', flush=True); "
        "c, _ = s.accept(); c.sendall(b'hello'); c.close()"
    )
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    kube.create(
        pod({"name": "main", "image": IMAGE, "command": ["python3", "-c", server], "env": env}, name="server")
    )
    kube.said("server", "up")
    address = kube.pod("server")["status"]["podIP"]
    client = f"import socket; print(socket.create_connection(({address!r}, 7000)).recv(9).decode())"
    assert kube.output({"name": "main", "image": IMAGE, "command": ["python3", "-c", client]}) == "hello\n"


def test_ranks_find_each_other_by_headless_service_names(kube: Kube) -> None:
    selector = {"batch.kubernetes.io/job-name": "j"}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    kube.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peers"}, "spec": spec})
    look = (
        "import os, socket, time\n"
        "other = 'j-%d.peers' % (1 - int(os.environ['JOB_COMPLETION_INDEX']))\n"
        "while True:\n"
        "    try:\n"
        "        print(socket.gethostbyname(other), flush=True); break\n"
        "    except OSError:\n"
        "        time.sleep(0.1)\n"
        "time.sleep(2)\n"
    )
    container = {"name": "main", "image": IMAGE, "command": ["python3", "-c", look]}
    kube.create(job(container, count=2, pod={"subdomain": "peers"}))
    assert kube.ended() == ("Complete", "CompletionsReached")
    known = {one["metadata"]["name"]: one["status"]["podIP"] for one in kube.pods()}
    said = {name: kube.log(name).strip() for name in known}
    first, second = sorted(known)
    assert (said[first], said[second]) == (known[second], known[first])


def test_pod_does_not_resolve_names_of_others_without_a_service(kube: Kube) -> None:
    look = (
        "import socket\n"
        "print(socket.gethostbyname(socket.gethostname()))\n"
        "try:\n"
        "    print(socket.gethostbyname('other'))\n"
        "except OSError:\n"
        "    print('unknown')\n"
    )
    kube.create(pod(SLEEP, name="other"))
    kube.said("other", "up")
    said = kube.output({"name": "main", "image": IMAGE, "command": ["python3", "-c", look]})
    assert said == f"{kube.pod('p')['status']['podIP']}\nunknown\n"


def test_logs_are_followed_to_their_end(kube: Kube) -> None:
    kube.create(pod("for i in 1 2 3; do echo $i; sleep 0.2; done; echo 4"))
    kube.said("p", "1")
    assert "".join(kube.client.log("p", follow=True)) == "1\n2\n3\n4\n"


def test_the_tail_of_a_log_its_times_and_since_when(kube: Kube) -> None:
    kube.create(pod("echo one; echo two; echo three"))
    kube.over()
    assert kube.log("p", tail_lines=2) == "two\nthree\n"
    stamped = kube.log("p", timestamps=True).splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == ["one", "two", "three"]
    assert stamped[0].startswith("20") and "T" in stamped[0].split()[0]
    assert kube.log("p", since=3600) == "one\ntwo\nthree\n"


def test_log_of_an_unstarted_container_is_refused_with_the_reason(kube: Kube) -> None:
    kube.create(pod(script("true", resources={"requests": {"cpu": "900"}}), name="never"))
    with pytest.raises(ApiError) as caught:
        kube.log("never", "main")
    assert caught.value.status.code == 400


def test_unschedulable_pod_says_why_in_the_schedulers_words(kube: Kube) -> None:
    big = script("true", resources={"limits": {"nvidia.com/gpu": "64"}})
    kube.create(pod(big))

    def condition() -> Manifest:
        known = kube.pod("p")["status"].get("conditions") or []
        return next((one for one in known if one["type"] == "PodScheduled"), {})

    until(lambda: condition().get("reason") == "Unschedulable", "the reason", lambda: kube.pod("p"))
    assert condition()["status"] == "False"
    assert "nodes are available: " in condition()["message"]
    assert "Insufficient nvidia.com/gpu" in condition()["message"]
    assert kube.pod("p")["status"]["phase"] == "Pending"


@pytest.mark.needs("kubectl")
def test_events_tell_what_happened_to_a_pod(kube: Kube) -> None:
    kube.create(pod(SLEEP))
    kube.said("p", "up")
    told = kube.kubectl("get", "events", "--field-selector", "involvedObject.name=p")
    assert all(word in told for word in ("Scheduled", "Created", "Started"))


def test_a_pod_has_its_own_deadline(kube: Kube) -> None:
    kube.create(pod(SLEEP, activeDeadlineSeconds=1))
    found = kube.over()["status"]
    assert (found["phase"], found["reason"]) == ("Failed", "DeadlineExceeded")
