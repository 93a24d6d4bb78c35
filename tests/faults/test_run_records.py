"""What a run leaves in the store: metrics, masked logs, use of the machine, its surroundings."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from hostler.records import layout
from hostler.records.body import Record, decode
from hostler.records.run import run_details, surroundings
from hostler.spec.job import Job, MetricSource, PythonEnv
from hostler.store.base import NotFound
from worker_world import World, until

SECRET = "hunter2-s3cr3t-value"


def ran_on(world: World, job: Job, attempt: int = 1, index: int = 0) -> Record:
    found = surroundings.of_attempt(world.store, job.run_id(index), attempt, world.entries(job, index))
    assert found is not None
    return found


def everything(world: World) -> dict[str, bytes]:
    return {entry.key: world.store.get(entry.key).data for entry in world.store.list("")}


def test_metrics_are_picked_from_json_lines_and_text_stays_text(world: World) -> None:
    script = """
print('starting {not json}')
for n in range(1, 4):
    print('{"step": %d, "train": {"loss": %f}, "name": "x", "ok": true}' % (n, 1 / n))
print('{"val": 9}', end="")
"""
    job = world.submit(script)
    world.work()
    assert world.curve(job, "train/loss") == [(n, pytest.approx(1 / n, abs=1e-5)) for n in (1, 2, 3)]
    assert world.curve(job, "val") == [(4, 9.0)] and not world.curve(job, "ok")
    assert world.row(job).metrics["val"] == 9.0 and "starting {not json}" in world.log(job)


def test_metrics_are_picked_by_a_pattern(world: World) -> None:
    script = "for n in range(3): print(f'Epoch {n}: loss={n / 2} acc=nan%')"
    pattern = r"Epoch (?P<step>\d+): loss=(?P<loss>[0-9.]+) acc=(?P<acc>\w+)"
    job = world.submit(script, metrics=MetricSource(json_lines=False, pattern=pattern))
    world.work()
    assert world.curve(job, "loss") == [(0, 0.0), (1, 0.5), (2, 1.0)] and len(world.curve(job, "acc")) == 3


def test_a_secret_is_in_no_object_of_the_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    script = """
import os, sys, time
key = os.environ["API_KEY"]
print("key", key)
sys.stdout.write(key[:7]); sys.stdout.flush(); time.sleep(0.3)
sys.stdout.write(key[7:] + "\\n")
print('{"step": 1, "loss": 2, "key": "%s"}' % key)
raise RuntimeError("rejected " + key)
"""
    job = world.submit(script, secrets=("API_KEY",), retries=0)
    world.work()
    print_it = ("bash", "-c", "echo $API_KEY; exit 1")
    other = world.submit(script, name="setup", setup=print_it, secrets=("API_KEY",), retries=0)
    world.work()
    assert (world.state(job).state, world.state(other).state) == ("failed", "failed")
    failure = world.state(job).failure
    assert failure and failure["message"].startswith("RuntimeError: rejected ***")
    assert "***" in (world.state(other).failure or {})["message"]
    assert world.log(job).count("***") >= 4
    found = [key for key, data in everything(world).items() if SECRET.encode() in data]
    assert found == []


def test_secret_on_the_command_line_is_covered_in_the_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", SECRET)
    command = ("bash", "-c", "exit 0", "x")
    job = world.submit("", command=command, secrets=("API_KEY",), runs=[{"plain": 1}])
    world.work()
    record = ran_on(world, job)
    assert record["command"] == [*command, "--plain", "1"] and record["host"] and record["packages"]
    assert record["source"]["snapshot"] == job.source.snapshot


def test_what_a_run_used_is_there_however_short_it_was(world: World) -> None:
    world.quick(usage=60.0)
    short = world.submit("", name="short", command=("true",))
    longer = world.submit(
        "import time\nx = b'1' * 90_000_000\nt = time.monotonic()\nwhile time.monotonic() - t < 1: pass",
        name="longer",
    )
    world.work()
    for name in ("system/cpu", "system/memory"):
        assert run_details.read(world.store, world.key(short)).metrics[name]["last"] >= 0
        curve = world.curve(longer, name)
        assert curve and all(value >= 0 for _, value in curve), name
    assert max(value for _, value in world.curve(longer, "system/memory")) > 80_000_000
    assert max(value for _, value in world.curve(longer, "system/cpu")) > 0.1
    assert "system/cpu" not in world.row(longer).metrics


def test_each_attempt_has_a_record_of_its_surroundings(world: World) -> None:
    job = world.submit("raise SystemExit(75 if open(__file__) and 0 else 3)", retries=1)
    world.work()
    for attempt in (1, 3):
        record = ran_on(world, job, attempt)
        assert record["python"]["version"] and record["command"][0] == sys.executable


def test_short_runs_share_environment_records_and_long_ones_write_theirs(
    world: World,
) -> None:
    world.quick(poll=10.0)
    short = world.submit("", name="short", command=("true",), runs=[{"n": n} for n in range(5)])
    world.work()
    world.quick(poll=0.02)
    longer = world.submit("import time\ntime.sleep(0.5)", name="longer")
    world.work()
    for index in range(5):
        record = ran_on(world, short, index=index)
        assert record["command"] == ["true", "--n", str(index)] and record["packages"]
        assert not list(world.store.list(layout.run(short.run_id(index))))
    assert len(list(world.store.list("surroundings/"))) == 1
    key = layout.environment(longer.run_id(0), 1)
    assert decode(world.store.get(key).data, key) == ran_on(world, longer)


def test_run_whose_python_does_not_answer_runs_and_records_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = world.root / "fake" / "python"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    job = world.submit("", command=("/bin/sh", "-c", "echo fine"), python=PythonEnv(exe=str(fake)))
    world.work()
    assert world.state(job).state == "done" and "fine" in world.log(job)
    assert str(fake) in ran_on(world, job)["problem"]


def test_pins_beside_an_existing_python_are_checked_before_the_run(world: World, tmp_path: Path) -> None:
    venv.create(tmp_path / "v", with_pip=False)
    world.file("requirements.txt", "nosuchpackage==1.2  # not there\n")
    python = PythonEnv(venv=str(tmp_path / "v"), requirements="requirements.txt")
    script = "import os, pathlib; pathlib.Path(os.environ['MARKS'], 'ran').write_text('x')"
    refused = world.submit(script, name="refused", python=python, command=("python", "train.py"))
    world.file("requirements.txt", "-r more.txt\n")
    world.file("more.txt", "numpy>=1\n")
    met = world.submit(script, name="met", python=python, command=("python", "train.py"))
    world.work(only=("refused",))
    failure = world.state(refused).failure
    assert failure and failure["kind"] == "machine" and world.state(refused).attempts == 1
    assert "nosuchpackage==1.2 (has none)" in failure["message"] and not world.mark("ran").exists()
    world.work(only=("met",))
    assert world.state(met).state == "done" and world.mark("ran").exists()


def test_a_run_that_is_never_started_leaves_no_record(world: World) -> None:
    job = world.submit("", setup=("false",), retries=0)
    world.work()
    with pytest.raises(NotFound):
        world.store.get(layout.environment(job.run_id(0), 1))


def test_log_is_in_the_store_while_the_run_goes_on(world: World) -> None:
    script = """
import os, pathlib, time
print("first", flush=True)
while not pathlib.Path(os.environ["MARKS"], "go").exists(): time.sleep(0.02)
"""
    job = world.submit(script)
    with world.working():
        until(lambda: "first" in world.log(job))
        assert world.state(job).state == "running"
        world.mark("go").touch()
        until(lambda: world.state(job).ended)
