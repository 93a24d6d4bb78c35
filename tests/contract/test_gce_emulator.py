"""The emulator of Compute Engine: machines, spot, what goes wrong; answers held against Google's document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest

import hostler
import servers
from gce_api import IMAGE, LABELS, REGION, ZONE, Api, Refused, properties, until
from hostler import proctable
from hostler.emulators.gce import Pace, emulator

servers.library("googleapiclient")
SCALE = 60.0


def code_of(operation: dict[str, Any]) -> str:
    return str(operation["error"]["errors"][0]["code"])


def test_machine_and_its_operation_pass_through_their_states(api: Api) -> None:
    path = f"/zones/{ZONE}/instances"
    asked = api.call(
        "POST", path, {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
    )
    assert (asked["status"], api.get(f"{path}/one")["status"]) == ("PENDING", "PROVISIONING")
    assert api.finished(asked)["status"] == "DONE"
    made = api.get(f"{path}/one")
    assert (made["status"], made["labels"]) == ("RUNNING", LABELS)
    assert made["scheduling"]["preemptible"] is True
    assert made["selfLink"].endswith(f"/zones/{ZONE}/instances/one")
    api.do("DELETE", f"{path}/one")
    with pytest.raises(Refused, match="404"):
        api.get(f"{path}/one")


def test_the_startup_script_runs_in_a_world_of_its_own(api: Api) -> None:
    api.insert(script='echo "home=$HOME tmp=$TMPDIR cwd=$PWD user=$USER cache=$HOSTLER_CACHE"; exit 3')
    text = api.said("one", "exit status 3")
    home = text.partition("home=")[2].split()[0]
    assert "hostler-gce-" in home and "cache=\n" in text and f"cwd={home.removesuffix('/home')}" in text
    told = api.get(f"/zones/{ZONE}/instances/one/serialPort", start=0)
    assert told["contents"] == api.gce.serial("one")
    assert api.get(f"/zones/{ZONE}/instances/one/serialPort", start=told["next"])["contents"] == ""


def test_stopped_machine_keeps_its_disk_and_reruns_its_script(api: Api) -> None:
    api.insert(
        script="echo here >> mark; echo marks=$(wc -l < mark); " + "while true; do sleep 0.05; done",
        spot=False,
    )
    api.said("one", "marks=1")
    api.do("POST", f"/zones/{ZONE}/instances/one/stop")
    assert (api.get(f"/zones/{ZONE}/instances/one")["status"], len(api.gce.left())) == ("TERMINATED", 2)
    api.do("POST", f"/zones/{ZONE}/instances/one/start")
    api.said("one", "marks=2")
    api.do("POST", f"/zones/{ZONE}/instances/one/reset")
    api.said("one", "marks=3")


def test_a_machine_can_switch_itself_off(api: Api) -> None:
    api.insert(script="poweroff", spot=False)
    until(lambda: api.get(f"/zones/{ZONE}/instances/one")["status"] == "TERMINATED", "a machine that is off")
    found = api.get(f"/zones/{ZONE}/operations", filter='operationType = "compute.instances.guestTerminate"')
    assert len(found["items"]) == 1


def test_deleting_runs_the_shutdown_script_and_leaves_no_process(api: Api, tmp_path: Path) -> None:
    api.insert(
        script="(setsid sleep 1000 &) ; (trap '' TERM; sleep 1000) & echo ready; wait",
        shutdown=f"date > {tmp_path}/bye",
    )
    api.said("one", "ready")
    until(lambda: len(api.gce.pids("one")) >= 3, "three processes")
    pids = api.gce.pids("one")
    api.do("DELETE", f"/zones/{ZONE}/instances/one")
    assert not [pid for pid in pids if proctable.start_of(pid)]
    assert (api.gce.left(), (tmp_path / "bye").exists()) == ([], True)


def test_labels_and_metadata_change_only_for_who_knows_their_fingerprint(api: Api) -> None:
    api.insert()
    path = f"/zones/{ZONE}/instances/one"
    made = api.get(path)
    with pytest.raises(Refused) as refused:
        api.call("POST", f"{path}/setLabels", {"labels": {"a": "b"}, "labelFingerprint": "AAAA"})
    assert (refused.value.status, refused.value.reason) == (412, "conditionNotMet")
    api.do("POST", f"{path}/setLabels", {"labels": {"a": "b"}, "labelFingerprint": made["labelFingerprint"]})
    changed = {"items": [{"key": "k", "value": "v"}], "fingerprint": made["metadata"]["fingerprint"]}
    api.do("POST", f"{path}/setMetadata", changed)
    now = api.get(path)
    assert (now["labels"], now["metadata"]["items"]) == ({"a": "b"}, [{"key": "k", "value": "v"}])
    with pytest.raises(Refused, match="412"):
        api.call("POST", f"{path}/setMetadata", changed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Bad_Name"}, "resource.name"),
        ({"machineType": "zones/us-central1-a/machineTypes/z9-huge"}, "machineType"),
        ({"disks": []}, "Boot disk"),
        ({"networkInterfaces": []}, "network interface"),
        ({"labels": {"Upper": "x"}}, "Label"),
        ({"scheduling": {"provisioningModel": "SPOT", "automaticRestart": True}}, "restart"),
        (
            {
                "scheduling": {
                    "terminationTime": "2020-01-01T00:00:00Z",
                    "instanceTerminationAction": "DELETE",
                }
            },
            "future",
        ),
        ({"guestAccelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": 99}]}, "accelerator"),
        (
            {
                "scheduling": {},
                "guestAccelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}],
            },
            "live migration",
        ),
    ],
)
def test_what_google_would_not_make_is_refused_at_once(
    api: Api, change: dict[str, object], words: str
) -> None:
    body = {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small", **change}
    with pytest.raises(Refused, match=words) as refused:
        api.call("POST", f"/zones/{ZONE}/instances", body)
    assert (refused.value.status, refused.value.reason) == (400, "invalid")
    assert api.gce.left() == []


def test_name_is_taken_once_and_repeated_request_returns_same_operation(api: Api) -> None:
    body = {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
    asked = str(uuid.uuid4())
    first = api.call("POST", f"/zones/{ZONE}/instances", body, requestId=asked)
    again = api.call("POST", f"/zones/{ZONE}/instances", body, requestId=asked)
    assert first["name"] == again["name"]
    with pytest.raises(Refused) as refused:
        api.call("POST", f"/zones/{ZONE}/instances", body, requestId=str(uuid.uuid4()))
    assert (refused.value.status, refused.value.reason) == (409, "alreadyExists")
    with pytest.raises(Refused, match="UUID"):
        api.call("POST", f"/zones/{ZONE}/instances", body, requestId="not-one")


def test_a_lost_answer_is_found_again_by_its_request_id(api: Api) -> None:
    body = {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
    asked = str(uuid.uuid4())
    api.gce.lose_answer("instances.insert")
    with pytest.raises(OSError):
        api.call("POST", f"/zones/{ZONE}/instances", body, requestId=asked)
    api.do("POST", f"/zones/{ZONE}/instances", body, requestId=asked)
    assert [seen.heard for seen in api.gce.requests if seen.api == "instances.insert"] == [False, True]
    assert api.gce.names() == ["one"]


def test_disk_without_auto_delete_outlives_its_machine_and_costs(api: Api) -> None:
    made = {"sourceImage": IMAGE, "diskSizeGb": "30", "labels": LABELS}
    api.insert(disks=[{"boot": True, "autoDelete": False, "initializeParams": made}])
    with pytest.raises(Refused, match="already being used"):
        api.call("DELETE", f"/zones/{ZONE}/disks/one")
    api.do("DELETE", f"/zones/{ZONE}/instances/one")
    assert api.gce.left() == [f"projects/emulated/zones/{ZONE}/disks/one"]
    found = api.get("/aggregated/disks", filter="labels.hostler-fleet=burst")
    assert [disk["sizeGb"] for disk in found["items"][f"zones/{ZONE}"]["disks"]] == ["30"]
    api.do("DELETE", f"/zones/{ZONE}/disks/one")
    assert api.gce.left() == []


WATCH = """
url="http://$GCE_METADATA_HOST/computeMetadata/v1/instance/preempted"
ask() { curl -s -H Metadata-Flavor:Google "$@"; }
mark=$(ask -D - -o /dev/null "$url" | tr -d '\\r' | sed -n 's/^ETag: //p')
echo watching; echo "told: $(ask "$url?wait_for_change=true&last_etag=$mark")" > %s/told
while true; do sleep 0.05; done
"""


def test_a_preempted_machine_is_told_and_given_its_soft_off(tmp_path: Path) -> None:
    """Real seconds for notice and soft-off: a busy machine may be slow to start a shell."""
    saving = f"for i in 1 2 3; do sleep 0.03; echo $i >> {tmp_path}/saved; done"
    early = {"instanceTerminationAction": "STOP", "preemptionNoticeDuration": {"seconds": "30"}}
    with emulator(scale=10, pace=Pace(soft_off=150)) as gce:
        api = Api(gce)
        api.insert(script=WATCH % tmp_path, shutdown=saving, scheduling=early)
        api.said("one", "watching")
        gce.preempt("one")
        until(lambda: api.get(f"/zones/{ZONE}/instances/one")["status"] == "TERMINATED", "its end")
        assert (tmp_path / "told").read_text() == "told: TRUE\n"
        assert (tmp_path / "saved").read_text().split() == ["1", "2", "3"]
        found = api.get(f"/zones/{ZONE}/operations", filter='operationType = "compute.instances.preempted"')
        assert len(found["items"]) == 1


def test_machine_that_outlasts_its_soft_off_is_cut_off(api: Api) -> None:
    api.insert(script="trap '' TERM; echo deaf; while true; do sleep 0.05; done")
    api.said("one", "deaf")
    began = time.monotonic()
    api.gce.preempt("one")
    until(lambda: not api.gce.left(), "the end of all")
    assert 30 / SCALE <= time.monotonic() - began < 30 / SCALE + 5


def test_without_notice_nothing_is_said(api: Api, tmp_path: Path) -> None:
    api.insert(script=WATCH % tmp_path, shutdown=f"date > {tmp_path}/bye")
    api.said("one", "watching")
    time.sleep(0.1)
    pids = api.gce.pids("one")
    api.gce.preempt("one", notice=False)
    assert api.gce.left() == [] and not [pid for pid in pids if proctable.start_of(pid)]
    assert not (tmp_path / "bye").exists()
    assert not (tmp_path / "told").exists() or not (tmp_path / "told").read_text()


def test_a_broken_host_restarts_what_may_restart(api: Api) -> None:
    api.insert("keeps", spot=False)
    api.insert("goes", scheduling={"instanceTerminationAction": "STOP"})
    boots = api.get(f"/zones/{ZONE}/instances/keeps")["lastStartTimestamp"]
    api.gce.host_error("keeps")
    api.gce.host_error("goes")
    assert api.get(f"/zones/{ZONE}/instances/goes")["status"] == "TERMINATED"
    until(lambda: api.gce.names() == ["keeps"], "one machine back")
    assert api.get(f"/zones/{ZONE}/instances/keeps")["lastStartTimestamp"] != boots


def test_a_shortage_comes_in_the_finished_operation_and_leaves_nothing(api: Api) -> None:
    api.gce.stockout(ZONE, "e2-small", spot_only=True)
    body = {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
    done = api.finished(api.call("POST", f"/zones/{ZONE}/instances", body))
    assert (code_of(done), done["httpErrorStatusCode"]) == ("ZONE_RESOURCE_POOL_EXHAUSTED", 503)
    assert api.gce.left() == []
    api.insert("other", machine="e2-medium")
    api.insert("paid", spot=False)
    api.gce.restock(ZONE)
    api.insert("one")


def test_exceeded_quota_fails_the_operation_and_shows_in_the_region(api: Api) -> None:
    api.gce.quota("GPUS_ALL_REGIONS", 1)
    api.gce.quota("PREEMPTIBLE_CPUS", 10, REGION)
    api.insert(machine="g2-standard-4")
    body = {**properties(), "name": "two", "machineType": f"zones/{ZONE}/machineTypes/g2-standard-4"}
    done = api.finished(api.call("POST", f"/zones/{ZONE}/instances", body))
    assert (code_of(done), done["httpErrorStatusCode"]) == ("QUOTA_EXCEEDED", 403)
    assert "GPUS_ALL_REGIONS" in str(done["error"])
    body["machineType"] = f"zones/{ZONE}/machineTypes/e2-standard-8"
    assert "PREEMPTIBLE_CPUS" in str(
        api.finished(api.call("POST", f"/zones/{ZONE}/instances", body))["error"]
    )
    quotas = {one["metric"]: (one["usage"], one["limit"]) for one in api.get("")["quotas"]}
    assert quotas["GPUS_ALL_REGIONS"] == (1.0, 1.0)
    near = {one["metric"]: (one["usage"], one["limit"]) for one in api.get(f"/regions/{REGION}")["quotas"]}
    assert near["PREEMPTIBLE_CPUS"] == (4.0, 10.0) and near["PREEMPTIBLE_NVIDIA_L4_GPUS"][0] == 1.0


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_api_refuses_and_recovers(api: Api, status: int) -> None:
    api.gce.fail(status, "instanceTemplates.insert")
    with pytest.raises(Refused, match=str(status)):
        api.template()
    api.template()


def test_dropped_request_has_no_effect_and_slow_one_arrives_late(api: Api) -> None:
    api.gce.drop("instanceTemplates.insert")
    with pytest.raises(OSError):
        api.template()
    assert api.gce.left() == []
    api.gce.delay(0.2, "zones.list")
    began = time.monotonic()
    api.get("/zones")
    assert time.monotonic() - began >= 0.2


def test_who_may_not_is_told_why(api: Api) -> None:
    with pytest.raises(Refused) as other:
        api.call("GET", "/zones", project="someone-elses")
    assert (other.value.status, other.value.reason) == (403, "forbidden")
    with pytest.raises(Refused) as none:
        api.call("GET", "/zones", project="no-such-project")
    assert (none.value.status, none.value.reason) == (404, "notFound")
    api.gce.disable_api()
    with pytest.raises(Refused, match="has not been used in project emulated") as off:
        api.get("/zones")
    assert (off.value.status, off.value.reason) == (403, "accessNotConfigured")
    api.gce.disable_api(False)
    api.gce.refuse_credentials()
    with pytest.raises(Refused) as refused:
        api.get("/zones")
    assert (refused.value.status, refused.value.reason) == (401, "authError")


def test_machine_lost_while_starting_ends_its_operation_and_is_retried(api: Api) -> None:
    with emulator(scale=10) as slow:
        calm = Api(slow)
        calm.template()
        calm.group(1)
        until(lambda: slow.names("STAGING"), "a machine that is about to boot")
        slow.preempt(slow.names("STAGING")[0], notice=False)
        calm.running(1)
        body = {**properties(), "name": "one", "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
        asked = calm.call("POST", f"/zones/{ZONE}/instances", body)
        until(lambda: "one" in slow.names("STAGING"), "a machine that is about to boot")
        calm.do("DELETE", f"/zones/{ZONE}/instances/one")
        assert code_of(calm.finished(asked)) == "RESOURCE_NOT_FOUND"


def test_what_the_emulator_cannot_do_it_says(api: Api) -> None:
    with pytest.raises(Refused, match="501"):
        api.get("/global/firewalls")


def test_everything_can_be_steered_over_http(api: Api) -> None:
    def control(call: str, /, **given: object) -> None:
        url = f"http://{api.gce.host}/_control/{call}"
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(given).encode(), method="POST")).close()

    api.insert(scheduling={"instanceTerminationAction": "STOP"})
    control("preempt", name="one", notice=False)
    assert api.get(f"/zones/{ZONE}/instances/one")["status"] == "TERMINATED"
    control("stockout", zone=ZONE)
    assert "error" in api.finished(api.call("POST", f"/zones/{ZONE}/instances/one/start"))
    for wrong in ("nothing", "_gate"):
        with pytest.raises(OSError, match="404"):
            control(wrong)
    with pytest.raises(OSError, match="400"):
        control("preempt", name="nobody")


def test_it_serves_a_terminal_until_it_is_told_to_end(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hostler.emulators.gce", "--bucket", "b", "--scale", "60"]
    source = str(Path(hostler.__file__).parents[1])
    own = {**os.environ, "PYTHONPATH": source, "TMPDIR": str(tmp_path)}
    served = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=own)
    try:
        assert served.stdout is not None
        told = [served.stdout.readline() for _ in range(5)]
        found = dict(line.removeprefix("export ").strip().split("=", 1) for line in told[:3])
        assert set(found) == {"HOSTLER_GCE_ENDPOINT", "STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT"}
        assert found["GOOGLE_CLOUD_PROJECT"] == "emulated" and "preempt" in told[3]
        with urllib.request.urlopen(f"{found['HOSTLER_GCE_ENDPOINT']}/projects/emulated/zones") as answer:
            assert json.load(answer)["items"]
        served.terminate()
        assert served.wait(20) == 0 and not list(tmp_path.glob("hostler-gce-*"))
    finally:
        served.kill()
        served.wait()
        if served.stdout is not None:
            served.stdout.close()


def test_maintenance_preempts_spot_and_is_shown_to_others(api: Api) -> None:
    api.insert("spot", scheduling={"instanceTerminationAction": "STOP"})
    api.insert("paid", spot=False)
    for name in ("spot", "paid"):
        api.do("POST", f"/zones/{ZONE}/instances/{name}/simulateMaintenanceEvent")
    until(lambda: api.gce.names("TERMINATED") == ["spot"], "a preemption")
    (paid,) = [machine for machine in api.gce.machines() if machine.name == "paid"]
    assert (paid.status, paid.board.maintenance) == ("RUNNING", "MIGRATE_ON_HOST_MAINTENANCE")


def test_a_bucket_can_vanish() -> None:
    with emulator(buckets=["b"]) as gce:
        assert gce.gcs is not None
        gce.remove_bucket("b")
        with pytest.raises(OSError, match="404"):
            urllib.request.urlopen(f"{gce.gcs.url}/storage/v1/b/b")
    with emulator() as gce, pytest.raises(LookupError, match="emulated storage was not started"):
        gce.remove_bucket("b")
