"""The store out of reach for longer than a lease, while a run is under way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
from botocore.exceptions import ClientError
from killer import RUN, Farm, farm, keys_of, often, outcome, until
from proxy import Fault, Proxy, running

from hostler.records.checkpoint import checkpoints
from hostler.records.run import log
from hostler.records.run.log import RunLog
from hostler.spec.job import Job

STEPS = 60

# Saves when it is asked to leave, too, as a well-behaved script does.
SCRIPT = f"""
import json, os, signal, sys, time
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "step")
step = int(open(path).read()) if os.path.exists(path) else 0
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
while step < {STEPS}:
    print(json.dumps({{"step": step, "value": 3 * step}}))
    step += 1
    if asked or step % 10 == 0 or step == {STEPS}:
        with open(path + ".tmp", "w") as file:
            file.write(str(step))
        os.replace(path + ".tmp", path)
        if asked:
            sys.exit(75)
        time.sleep(0.4)
    time.sleep(0.1)
"""


@contextmanager
def under_way(url: str, endpoint: str, folder: Path, **times: float) -> Iterator[tuple[Farm, Job, Proxy]]:
    """A run with something saved, on a worker that reaches the store through a wire that can be cut."""
    with (
        running(endpoint) as wire,
        farm(url, folder, {"AWS_ENDPOINT_URL": wire.url}, retry=1.0, **times) as made,
    ):
        (made.code / "steps.py").write_text(SCRIPT)
        job = made.submit(Job(name="steps", command=(sys.executable, "steps.py"), **often()))  # type: ignore[arg-type]
        made.start()
        until(lambda: checkpoints.committed(made.store, keys_of(job)[0].run), why=made.said)
        yield made, job, wire


def cut(made: Farm, wire: Proxy) -> None:
    """No answer any more; the process of the run must go by itself, its worker must not."""
    wire.choose = lambda method, path: Fault.DROP_BEFORE
    until(lambda: not made.processes(RUN), 60, why=made.said)
    assert len(made.parents) == 1 and made.parents[0].poll() is None


def join(wire: Proxy) -> None:
    wire.choose = lambda method, path: None


def check(made: Farm, job: Job) -> list[dict[str, object]]:
    [key] = keys_of(job)
    found = outcome(made.store, key)
    assert found.state.state == "done"
    assert found.points["value"] == [(step, 3.0 * step) for step in range(STEPS)]
    assert found.files == {"step": str(STEPS).encode()}
    assert made.processes() == {}
    return RunLog(made.store, key).read_on().entries


def test_run_is_stopped_saved_locally_and_delivered_later(
    tmp_path: Path, seaweed_store_url: str, seaweed_url: str
) -> None:
    with under_way(seaweed_store_url, seaweed_url, tmp_path) as (made, job, wire):
        cut(made, wire)
        time.sleep(made.times["lease"])
        before = checkpoints.committed(made.store, keys_of(job)[0].run)[0]
        join(wire)
        made.finish(job, workers=1)
        entries = check(made, job)
        assert [e["kind"] for e in entries] == [log.CLAIM, log.RELEASE, log.CLAIM, log.END]
        assert entries[1]["why"] == "unreachable" and entries[1]["progress"]
        restored = str(entries[-1]["restored"])
        assert restored.startswith("1-") and restored != before.name, "what it saved last was not delivered"


def test_run_taken_over_meanwhile_delivers_nothing_visible(
    tmp_path: Path, seaweed_store_url: str, seaweed_url: str
) -> None:
    with under_way(seaweed_store_url, seaweed_url, tmp_path) as (made, job, wire):
        cut(made, wire)
        with farm(seaweed_store_url, tmp_path / "elsewhere") as other:
            other.start()
            until(lambda: not made.is_open(keys_of(job)[0]), why=other.said)
        before = json.dumps(RunLog(made.store, keys_of(job)[0]).read_on().entries)
        join(wire)
        made.finish(job, workers=1)
        entries = check(made, job)
        assert json.dumps(entries) == before and entries[-1]["attempt"] == 2


def test_worker_whose_store_stays_away_too_long_leaves_for_good(
    tmp_path: Path, seaweed_store_url: str, seaweed_url: str
) -> None:
    with under_way(seaweed_store_url, seaweed_url, tmp_path, storeless=4.0) as (made, job, wire):
        wire.choose = lambda method, path: Fault.DROP_BEFORE
        [parent] = made.parents
        assert parent.wait(90) == 1, made.said()
        assert "this worker leaves" in made.said()
        assert made.processes() == {}
        [key] = keys_of(job)
        kinds = [entry["kind"] for entry in RunLog(made.store, key).read_on().entries]
        assert kinds == [log.CLAIM] and checkpoints.committed(made.store, key.run)


def test_worker_starting_without_its_store_waits_then_leaves_for_good(
    tmp_path: Path, seaweed_store_url: str, seaweed_url: str
) -> None:
    with running(seaweed_url) as wire:
        wire.choose = lambda method, path: Fault.DROP_BEFORE
        there = {"AWS_ENDPOINT_URL": wire.url}
        with farm(seaweed_store_url, tmp_path, there, retry=1.0, storeless=2.0) as made:
            assert made.start().wait(90) == 1, made.said()
            assert (
                made.said().count("the store has not answered for") == 1
                and "starting another" not in made.said()
            )


def ends_clearly(made: Farm, why: str) -> None:
    """The worker and its run are gone within the bound, and one line says why."""
    [parent] = made.parents
    assert parent.wait(90) == 1, made.said()
    [line] = [line for line in made.said().splitlines() if "this worker leaves" in line]
    assert why in line, line
    assert made.processes() == {} and "Traceback" not in made.said()


def test_deleted_bucket_ends_its_worker_after_a_lease(
    tmp_path: Path, seaweed_store_url: str, seaweed_url: str
) -> None:
    client = boto3.client("s3", endpoint_url=seaweed_url)
    client.create_bucket(Bucket="doomed")

    def is_deleted() -> bool:
        for entry in client.list_objects_v2(Bucket="doomed").get("Contents", []):
            client.delete_object(Bucket="doomed", Key=entry["Key"])
        try:
            client.delete_bucket(Bucket="doomed")
        except ClientError:  # the worker has written meanwhile
            return False
        return True

    with farm("s3://doomed/p", tmp_path, retry=1.0) as made:
        (made.code / "steps.py").write_text(SCRIPT)
        job = made.submit(Job(name="steps", command=(sys.executable, "steps.py"), **often()))  # type: ignore[arg-type]
        made.start()
        until(lambda: checkpoints.committed(made.store, keys_of(job)[0].run), why=made.said)
        until(is_deleted)
        ends_clearly(made, "the bucket does not exist")


def test_store_turned_read_only_ends_its_worker_in_time(tmp_path: Path, small_disk: Path) -> None:
    with farm(str(small_disk / "store"), tmp_path, {"HOSTLER_DISK_MIN": "0"}, storeless=4.0) as made:
        (made.code / "steps.py").write_text(SCRIPT)
        job = made.submit(Job(name="steps", command=(sys.executable, "steps.py"), **often()))  # type: ignore[arg-type]
        made.start()
        until(lambda: checkpoints.committed(made.store, keys_of(job)[0].run), why=made.said)
        remount = ["mount", "-o", "remount,ro", str(small_disk)]
        until(lambda: subprocess.run(remount, capture_output=True).returncode == 0)
        ends_clearly(made, "the file system is read-only")
        kinds = [entry["kind"] for entry in RunLog(made.store, keys_of(job)[0]).read_on().entries]
        assert kinds == [log.CLAIM], "nothing half-made: the run goes on where the store can be written"
