"""Fleets of real sshd machines, by the commands a person types on a laptop."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import servers
from fleet_world import FleetWorld, bucket, store_of
from hostler.records.rows import rows
from platform_takeovers import link_cut
from secret_world import NAMES, Hold, Planted, private, script
from sshhosts import Hosts, wait_until

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]


@pytest.fixture
def lab(tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    made = FleetWorld(tmp_path / "world", hosts, store_of(tmp_path.name))
    yield made
    made.hang_up()
    made.close()


def test_run_on_a_host_is_followed_and_leaves_nothing(lab: FleetWorld, hosts: Hosts) -> None:
    lab.project(hosts=("n2",))
    answer = lab.run("run", "steps=3", "lr=2")
    assert answer.code == 0, answer.err
    assert '"value": 4.0' in answer.out
    shown = lab.run("show", "--json", "walk").json
    assert "n2" in str(shown)
    lab.quiet()


def all_whole(lab: FleetWorld, count: int, steps: int) -> list[dict[str, Any]]:
    """Every run is done, has each step once and the right one, and its last checkpoint."""
    found = lab.outcomes()
    assert len(found) == count
    for n, one in enumerate(found):
        assert one["state"] == "done"
        assert one["points"]["value"] == [[step, step * float(n + 1)] for step in range(steps)]
        assert one["files"] == {"step": str(steps)}
    return found


@contextmanager
def on_store(kind: str, tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    with ExitStack() as stack:
        url, variables = store_of(tmp_path.name), dict[str, str]()
        if kind == "s3":
            url, variables = f"s3://{servers.BUCKET}/walk", stack.enter_context(bucket(hosts, tmp_path))
        lab = FleetWorld(tmp_path / "world", hosts, url, **variables)
        stack.callback(lab.close)
        stack.callback(lab.hang_up)
        yield lab


@pytest.mark.parametrize("kind", [pytest.param("ssh", marks=pytest.mark.soak), "s3"])
def test_eight_runs_on_four_hosts_survive_one_cut_off_host(kind: str, tmp_path: Path, hosts: Hosts) -> None:
    with on_store(kind, tmp_path, hosts) as lab:
        lab.submit(8, steps=25, nap=0.02)
        lab.hold("n1", "n2", "n3", "n4")
        answer = lab.run("up")
        assert answer.code == 0 and "4 workers of lab started" in answer.err, answer.err
        wait_until(lambda: all(host.pids("steps.py") for host in hosts.every), 90)
        hosts["n3"].cut()
        lab.let_go()
        lab.done(8)  # the others do without it
        hosts["n3"].join()
        lab.quiet(60)
        found = all_whole(lab, 8, 25)
        assert sum(one["kinds"].count("claim") for one in found) == 9, "its run was taken over, once"
        wheels = json.loads(lab.script("keys", lab.url, "wheels/"))
        assert bool(wheels) is (kind == "s3"), "the driver is kept by hash where one is needed"
        assert len(json.loads(lab.script("keys", lab.url, "library/"))) == 1


@pytest.mark.parametrize("kind", ["ssh", pytest.param("s3", marks=pytest.mark.soak)])
def test_cut_off_host_finishes_and_delivers_when_it_is_back(kind: str, tmp_path: Path, hosts: Hosts) -> None:
    with on_store(kind, tmp_path, hosts) as lab:
        lab.project(hosts=("n3",))
        lab.submit(1, steps=30, nap=0.1)
        lab.run("up")
        wait_until(lambda: hosts["n3"].pids("steps.py"), 90)
        hosts["n3"].cut()
        wait_until(lambda: not hosts["n3"].pids("steps.py"), 90)
        time.sleep(5)  # over a lease: nobody knows whether it lives
        hosts["n3"].join()
        lab.done(1)
        lab.quiet(60)
        [one] = all_whole(lab, 1, 30)
        assert one["kinds"] in (["claim", "end"], ["claim", "release", "claim", "end"])


def test_run_of_a_host_without_link_waits_one_lease(lab: FleetWorld) -> None:
    taken = link_cut(lab, beat=0.5, lease=6.0)
    assert taken.seconds >= 6.0 - 0.5 and taken.within(6.0 + 2 * 0.5)
    lab.let_go()
    lab.done(2)
    lab.hosts["n3"].join()
    lab.quiet()
    all_whole(lab, 2, 10)


def test_workers_outlive_the_connection_and_a_killed_one_is_restarted(lab: FleetWorld) -> None:
    host = lab.hosts["n2"]
    lab.project(hosts=("n2",))
    lab.submit(1, steps=10, nap=0.02)
    lab.hold("n2")
    lab.run("up")
    lab.hang_up()
    wait_until(lambda: host.pids("steps.py"), 90)
    before = set(host.pids("steps.py"))
    host.kill("--session")
    wait_until(lambda: not before & set(host.pids("steps.py")), 90)
    lab.let_go()
    lab.done(1)
    lab.quiet()
    [one] = all_whole(lab, 1, 10)
    assert one["kinds"] == ["claim", "claim", "end"]


def test_host_that_is_down_returns_to_the_fleet_with_up(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"))
    lab.hosts["n3"].cut()
    lab.submit(3, steps=10, nap=0.02)
    lab.hold("n2", "n3")
    first = lab.run("up")
    assert first.code == 0 and "1 worker of lab started" in first.err
    assert "n3 is left out: n3 cannot be reached" in first.err and "hostler up" in first.err
    lab.close()  # the laptop is switched off and on, and nobody waits for the host any more
    lab.hosts["n3"].join()
    second = lab.run("up")
    assert second.out.startswith("n3/") and "1 worker of lab started" in second.err, second.err
    lab.let_go()
    lab.done(3)
    lab.quiet()
    all_whole(lab, 3, 10)


def test_host_that_was_down_gets_its_workers_by_itself(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"))
    lab.hosts["n3"].cut()
    lab.submit(3, steps=10, nap=0.02)
    lab.hold("n2", "n3")
    first = lab.run("up")
    assert first.code == 0 and "n3: workers start there by themselves" in first.err, first.err
    wait_until(lambda: lab.hosts["n2"].pids("steps.py"), 60)
    lab.hosts["n3"].join()
    wait_until(lambda: lab.hosts["n3"].pids("steps.py"), 90)
    lab.let_go()
    lab.done(3)
    lab.quiet()
    all_whole(lab, 3, 10)


def test_watched_host_gets_its_workers_though_nobody_is_alive(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"))
    lab.hosts["n3"].cut()
    lab.submit(1, steps=10, nap=0.02)
    lab.hold("n2", "n3")
    assert "n3: workers start there by themselves" in lab.run("up").err
    wait_until(lambda: lab.hosts["n2"].pids("steps.py"), 60)
    lab.hosts["n2"].cut()
    lab.hosts["n2"].kill("hostler.worker")
    lab.hosts["n3"].join()
    wait_until(lambda: not lab.processes(holding="latecomers"), 90)  # nobody is alive, so that it ended
    assert not lab.hosts["n3"].pids("hostler.worker")
    looks = lab.start("status", "--watch")
    wait_until(lambda: lab.hosts["n3"].pids("steps.py"), 90)
    lab.let_go()
    lab.done(1)
    assert looks.wait(60) == 0
    lab.hosts["n2"].join()
    lab.quiet()
    all_whole(lab, 1, 10)


def test_late_host_gets_its_workers_while_the_dashboard_is_open(lab: FleetWorld) -> None:
    """It was open before the fleet was started, and nobody of the fleet is alive."""
    lab.project(hosts=("n2", "n3"))
    lab.submit(1, steps=10, nap=0.02)
    board = lab.start("ui", "--no-browser", "--port", "0")
    assert board.stdout is not None and board.stdout.readline().startswith("http")
    lab.hosts["n3"].cut()
    lab.hold("n2", "n3")
    assert "n3: workers start there by themselves" in lab.run("up").err
    wait_until(lambda: lab.hosts["n2"].pids("steps.py"), 60)
    lab.hosts["n2"].cut()
    lab.hosts["n2"].kill("hostler.worker")
    lab.hosts["n3"].join()
    wait_until(lambda: lab.hosts["n3"].pids("steps.py"), 120)
    lab.let_go()
    lab.done(1)
    board.terminate()
    assert board.wait(60) is not None
    lab.hosts["n2"].join()
    lab.quiet()
    all_whole(lab, 1, 10)


def test_host_that_cannot_use_the_store_gets_no_worker(lab: FleetWorld) -> None:
    """It answers, but does not know the key of the store's host: its workers would have run in vain."""
    (lab.hosts["n3"].home / ".ssh" / "known_hosts").write_text("")
    lab.project(hosts=("n2", "n3"))
    lab.submit(1, steps=10, nap=0.02)
    lab.hold("n2")
    answer = lab.run("up")
    assert answer.code == 0 and "1 worker of lab started" in answer.err, answer.err
    assert "n3 cannot use the store" in answer.err and "host key is not known" in answer.err
    assert not lab.hosts["n3"].pids("hostler.worker")
    lab.let_go()
    lab.done(1)
    lab.quiet()
    all_whole(lab, 1, 10)


def test_launch_on_hosts_without_the_store_fails_and_says_why(lab: FleetWorld) -> None:
    (lab.hosts["n3"].home / ".ssh" / "known_hosts").write_text("")
    lab.project(hosts=("n3",))
    lab.submit(1, steps=3, nap=0.02)
    answer = lab.run("up")
    assert answer.code == 1 and "no worker was started: n3 cannot use the store" in answer.err, answer.err
    assert set(lab.states().values()) == {"queued"}
    lab.quiet()


def test_run_of_a_silent_host_is_not_called_running(lab: FleetWorld) -> None:
    lab.project(hosts=("n2",))
    lab.submit(1, steps=10, nap=0.02)
    lab.hold("n2")
    assert lab.run("up").code == 0
    lab.until("running", 1)
    assert "1 running" in lab.run("status").err
    lab.hosts["n2"].cut()
    wait_until(lambda: all(row.stale for row in rows(lab.near())), 60)  # over a lease
    silent = lab.run("status")
    assert "running" not in silent.out + silent.err, silent
    assert "lost? " in silent.out and "1 lost?" in silent.err, silent
    assert "1 without a sign of life" in silent.err
    lab.hosts["n2"].join()
    lab.let_go()
    lab.done(1)
    assert "1 done" in lab.run("status").err
    lab.quiet()


def test_no_reachable_host_is_an_error_before_anything_is_submitted(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"))
    lab.hosts["n2"].cut()
    lab.hosts["n3"].cut()
    answer = lab.run("run", "steps=3")
    assert answer.code == 75 and "none of the 2 hosts can be used" in answer.err, answer.err
    assert lab.states() == {}


def test_folder_of_the_laptop_is_refused_with_three_alternatives(lab: FleetWorld) -> None:
    for words in (("run", "steps=3"), ("run", "--dry-run", "steps=3")):
        answer = lab.run(words[0], "--store", str(lab.folder / "here"), *words[1:])
        assert answer.code == 2, answer
        assert "n1, n2, n3, n4 cannot see the store's folder" in answer.err
        assert all(way in answer.err for way in ("s3://", "share", "ssh://"))
    assert (
        "here is not a hostler store" in lab.run("status", "--store", str(lab.folder / "here"), "--json").err
    )


def test_down_ends_the_workers_and_their_runs_continue_with_up(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"), workers=2)
    lab.submit(2, steps=10, nap=0.02)
    lab.hold("n2", "n3")
    assert "4 workers of lab started" in lab.run("up").err
    wait_until(lambda: lab.hosts["n2"].pids("steps.py") or lab.hosts["n3"].pids("steps.py"), 90)
    answer = lab.run("down")
    assert answer.code == 0 and "nothing of lab is left" in answer.err, answer.err
    lab.quiet()
    assert set(lab.states().values()) == {"queued"}
    lab.let_go()
    lab.run("up")
    lab.done(2)
    lab.quiet()
    all_whole(lab, 2, 10)


def test_down_says_which_host_could_not_be_asked(lab: FleetWorld) -> None:
    lab.hosts["n4"].cut()
    answer = lab.run("down")
    assert answer.code == 1 and "n4 could not be asked" in answer.err


def test_secrets_are_in_a_private_file_that_goes_with_workers(lab: FleetWorld) -> None:
    lab.project(hosts=("n2",))
    home = lab.hosts["n2"].home
    planted, hold = Planted(), Hold(home, "/root")
    text = (lab.folder / "hostler.yaml").read_text() + f"retries: 0\nsecrets: [{', '.join(NAMES)}]\n"
    lab.write("hostler.yaml", text)
    lab.write("steps.py", script(hold))
    shown = [lab.run("run", "--dry-run", "--name", "one", **planted.values)]
    shown.append(lab.run("run", "--detach", "--name", "one", **planted.values))
    assert shown[-1].code == 0, shown[-1].err
    wait_until(hold.waits, 90)
    assert not planted.listed() and not planted.beside_the_run()
    files = [path for path in planted.files(lab.folder.parent, home) if path.name != "output.log"]
    assert [path.parent for path in files] == [home / ".cache" / "hostler" / "secrets"] and private(files[0])
    hold.let_go()
    lab.run("wait", "one")
    shown += [lab.run(*words) for words in (("logs", "one"), ("show", "--json", "one"), ("errors", "one"))]
    assert planted.arrived(shown[2].out), shown[2].out[-3000:]
    assert not any(planted.is_in(answer.out + answer.err) for answer in shown)
    lab.quiet()
    assert not planted.files(lab.folder.parent, home, lab.hosts["n1"].home)
    assert lab.hosts.ssh("n1", f"grep -rl {planted.token} {lab.url.removeprefix('ssh://n1')}").stdout == b""


def test_doctor_names_the_hosts_that_do_not_reach_the_store(lab: FleetWorld) -> None:
    lab.submit(1, steps=1, nap=0)
    lab.hosts["n4"].cut()
    (lab.hosts["n3"].home / ".ssh" / "known_hosts").write_text("")
    answer = lab.run("doctor", "--json")
    said = {check["what"]: check for check in answer.json}
    assert answer.code == 1
    assert "has the store's folder" in said["n1"]["detail"] and said["n1"]["level"] == "ok"
    assert "reaches the store" in said["n2"]["detail"] and "no GPU" in said["n2"]["detail"]
    assert "host key is not known" in said["n3"]["detail"] and "try ssh from there" in said["n3"]["todo"]
    assert "cannot be reached" in said["n4"]["detail"]
    lab.quiet()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("key", "n2: its host key is not known here"),
        ("user", "nobody@n2 refused the login"),
        ("python", "n2 has no Python"),
    ],
)
def test_unsuitable_host_is_one_clear_error_and_nothing_is_submitted(
    lab: FleetWorld, spoil: str, words: str
) -> None:
    lab.project(hosts=("nobody@n2" if spoil == "user" else "n2",))
    if spoil == "key":
        known = lab.hosts.laptop / ".ssh" / "known_hosts"
        known.write_text("".join(line for line in known.open() if lab.hosts["n2"].address not in line))
    if spoil == "python":
        (lab.hosts["n2"].home / ".bashrc").write_text("export PATH=/root/empty\n")
    answer = lab.run("run", "steps=3")
    lines = answer.err.strip().splitlines()
    assert answer.code == 1 and words in lines[0] and lines[1].startswith("  → ") and len(lines) == 2, (
        answer.err
    )
    assert lab.states() == {}


def test_a_worker_makes_no_store_of_a_mistyped_path(lab: FleetWorld) -> None:
    answer = lab.run("worker", "--no-parent", "ssh://n1/tmp/mistyped")
    assert answer.code == 1 and "no store at ssh://n1/tmp/mistyped" in answer.err
    assert not (lab.hosts["n1"].root / "tmp/mistyped").exists()


def test_sweep_file_runs_on_four_hosts_storing_on_one(lab: FleetWorld) -> None:
    lab.write("grid.yaml", "name: grid\nparameters: {lr: [1, 2, 3, 4, 5, 6], steps: 5}\n")
    planned = lab.run("plan", "grid.yaml")
    assert planned.code == 0, planned.err
    answer = lab.run("sweep", "-y", "grid.yaml")
    assert answer.code == 0, answer.err
    lab.done(6)
    lab.quiet()
    all_whole(lab, 6, 5)
    refused = lab.run("plan", "--store", str(lab.folder / "here"), "grid.yaml")
    assert refused.code == 2 and "cannot see the store's folder" in refused.err


FROM_PYTHON = """
import json, sys, hostler
if __name__ == "__main__":
    found = hostler.sweep("python steps.py", {"lr": [1, 2, 3], "steps": 3}, name="mine", style="json")
    rows = found.wait(120).rows()
    print(json.dumps([[row.state, row.host] for row in rows]))
"""
REFUSED = """
import json, hostler
try:
    hostler.sweep("python steps.py", {"lr": [1, 2]}, name="other", store="here")
except hostler.errors.HostlerError as error:
    print(json.dumps(str(error)))
"""


def test_sweep_from_python_asks_the_hosts_first_and_runs_there(lab: FleetWorld) -> None:
    """By the same road as the command: what is down is left out, secrets and the store's address go along."""
    lab.project(hosts=("n2", "n3", "n4"))
    lab.hosts["n4"].cut()
    lab.write("go.py", FROM_PYTHON)
    found = json.loads(lab.program("go.py"))
    assert [state for state, _ in found] == ["done"] * 3
    assert {host for _, host in found} <= {"n2", "n3"}
    lab.quiet()
    assert "cannot see the store's folder" in lab.python(REFUSED)
    assert not (lab.folder / "here" / "sweeps").exists()
