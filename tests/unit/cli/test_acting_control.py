from __future__ import annotations

import json
import os
import signal
from contextlib import suppress

from acting_world import COUNTS, DEAF, PRINTS, World, wait_for, world
from hostler import proctable
from hostler.records.run.log import END, RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job

__all__ = ["world"]

FAILS = "import sys\nsys.exit(3)\n"


def fails(world: World) -> None:
    world.write("train.py", FAILS)
    world.write("hostler.yaml", "retries: 0")


def started(world: World, name: str = "a", text: str = COUNTS) -> None:
    world.write("train.py", text)
    world.ok("run", "--name", name, "--detach", "train.py", "1000")
    wait_for(lambda: world.printed(name), f"{name} to print")


def test_stop_saves_and_resume_goes_on_from_there(world: World) -> None:
    started(world)
    assert "a: asked to save and stop" in world.ok("stop", "a")
    assert world.until("a", "stopped")
    world.write("train.py", "raise SystemExit('resume keeps the code it had')")
    assert "a: queued again" in world.ok("resume", "a")
    wait_for(lambda: world.printed("a").count("begins at") == 2, "the second attempt")
    second = world.printed("a").rpartition("begins at ")[2]
    assert int(second.split()[0]) > 0


def test_pause_keeps_the_place_and_resume_takes_it_up(world: World) -> None:
    started(world)
    world.ok("pause", "a")
    world.until("a", "paused")
    assert "already paused" in world.ok("pause", "a")
    world.ok("resume", "a")
    world.until("a", "running")


def test_stop_now_does_not_wait_for_a_deaf_script(world: World) -> None:
    started(world, text=DEAF)
    assert "a: stopped" in world.ok("stop", "--now", "a")
    assert world.state("a") == "stopped"
    wait_for(lambda: not _scripts(world), "the script to be killed", 10)


def test_stop_with_workers_ends_the_fleet(world: World) -> None:
    started(world)
    done = world.cli("stop", "a", "--workers")
    assert done.returncode == 0 and "1 worker of here: asked to leave" in done.stderr
    world.until("a", "stopped")


def test_stop_of_a_done_run_is_not_a_failure(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "a", "train.py")
    assert "a: already done" in world.ok("stop", "a")


def test_an_unknown_name_is_refused_and_the_others_are_done(world: World) -> None:
    started(world)
    done = world.cli("stop", "a", "b")
    assert done.returncode == 1
    assert "a: asked to save and stop" in done.stdout
    assert "no run or sweep named 'b'" in done.stderr


def test_resume_of_a_done_run_is_refused(world: World) -> None:
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "a", "train.py")
    done = world.cli("resume", "a")
    assert done.returncode == 1 and "only a stopped or paused run is resumed" in done.stderr


def test_resume_without_start_leaves_it_queued(world: World) -> None:
    started(world)
    world.ok("stop", "a")
    world.until("a", "stopped")
    world.ok("resume", "--no-start", "a")
    assert world.state("a") == "queued"
    rows = json.loads(world.ok("resume", "a", "--json"))
    assert [row["said"] for row in rows] == ["already queued"]
    world.until("a", "running")


def test_retry_takes_todays_code_and_says_what_changed(world: World) -> None:
    fails(world)
    assert world.cli("run", "--name", "a", "train.py").returncode == 3
    world.write("train.py", "print('repaired')\n")
    world.write("more.py", "")
    done = world.cli("retry", "a")
    assert done.returncode == 0 and "a: queued again" in done.stdout
    assert "with today's code: train.py changed, more.py new" in done.stderr
    world.until("a", "done")


def test_retry_with_the_same_code_fails_the_same_way(world: World) -> None:
    fails(world)
    world.cli("run", "--name", "a", "train.py")
    world.write("train.py", "print('repaired')\n")
    assert "today" not in world.cli("retry", "--same-code", "a").stderr
    world.until("a", "failed")
    world.ok("retry", "a")
    world.until("a", "done")


def test_a_resume_keeps_the_code_a_retry_brought(world: World) -> None:
    fails(world)
    world.cli("run", "--name", "a", "train.py", "1000")
    world.write("train.py", COUNTS)
    world.ok("retry", "a")
    wait_for(lambda: "begins at" in world.printed("a"), "the second code")
    world.ok("stop", "a")
    world.until("a", "stopped")
    world.ok("resume", "a")
    wait_for(lambda: world.printed("a").count("begins at") == 2, "the second code again")


def test_retry_from_another_folder_is_refused(world: World) -> None:
    fails(world)
    world.cli("run", "--name", "a", "train.py")
    other = world.folder.parent / "other"
    other.mkdir()
    done = world.cli("retry", "--store", str(world.folder / ".hostler"), "a", cwd=other)
    assert done.returncode == 2 and "train.py of a is not in" in done.stderr
    assert world.state("a") == "failed"


def test_retry_of_a_stopped_run_names_resume(world: World) -> None:
    started(world)
    world.ok("stop", "a")
    world.until("a", "stopped")
    assert "hostler resume continues them" in world.cli("wait", "a").stderr
    refused = world.cli("retry", "a")
    assert refused.returncode == 1 and "a: stopped: hostler resume continues it" in refused.stderr


def test_retry_fresh_runs_a_done_run_from_the_beginning(world: World) -> None:
    world.write("train.py", COUNTS)
    world.ok("run", "--name", "a", "train.py", "3")
    refused = world.cli("retry", "a")
    assert refused.returncode == 1 and "only a failed, diverged or lost run" in refused.stderr
    world.ok("retry", "--fresh", "a")
    wait_for(lambda: world.printed("a").count("begins at 0") == 2, "a second beginning")


def test_retry_takes_a_run_from_a_lost_worker(world: World) -> None:
    started(world)
    assert "a: already running" in world.ok("retry", "a")
    for pid in proctable.marked(world.env["HOSTLER_CACHE"], "HOSTLER_CACHE"):
        with suppress(ProcessLookupError):  # gone with its parent
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: world.rows("a")[0]["stale"], "the heartbeat to be old")
    world.write("train.py", PRINTS)
    assert "a: queued again" in world.ok("retry", "a")
    world.until("a", "done")
    assert "args 1000" in world.printed("a")


def test_retry_lifts_a_halted_sweep(world: World) -> None:
    fails(world)
    world.cli("run", "--name", "a", "train.py")
    assert sweeps.halt(world.store, "a", "for the test")
    world.write("train.py", PRINTS)
    world.ok("retry", "a")
    assert sweeps.halted(world.store, "a") is None
    world.until("a", "done")


def many(world: World, count: int, state: str = "failed") -> Job:
    """A sweep whose runs have all ended so."""
    world.write("train.py", PRINTS)
    world.ok("run", "--name", "one", "train.py")
    source = sweeps.load(world.store, "one").source
    job = Job("many", ("python", "train.py"), runs=tuple({"i": i} for i in range(count)), source=source)
    sweeps.submit(world.store, job)
    for run in sweeps.run_ids(job):
        RunLog(world.store, RunKey("many", run)).append({"kind": END, "state": state})
    return job


def test_acting_on_a_sweep_counts_many_runs(world: World) -> None:
    many(world, 12)
    assert world.ok("retry", "--no-start", "many").splitlines() == ["12 runs: queued again"]
    assert world.ok("stop", "many/3", "many").splitlines() == ["12 runs: stopped"]


def test_runs_of_a_sweep_that_need_nothing_are_no_refusal(world: World) -> None:
    many(world, 2, "done")
    assert world.cli("retry", "many").returncode == 0
    assert world.cli("retry", "many/1").returncode == 1


def _scripts(world: World) -> list[int]:
    return [pid for pid in proctable.marked(world.env["HOSTLER_CACHE"], "HOSTLER_CACHE") if _is_script(pid)]


def _is_script(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"train.py" in file.read()
    except OSError:
        return False
