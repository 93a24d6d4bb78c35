"""ssh:// stores when things go wrong: a cut link, a dead far side, a host that is down, one that won't do."""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hostler.errors import StoreError, StoreUnreachable
from hostler.store import NotFound
from hostler.store.registry import check
from hostler.store.retry import RetryTime
from hostler.store.ssh import SshStore
from hostler.testing import racer
from sshhosts import Hosts, wait_until

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]

SERVER = "stdin.buffer"


@pytest.fixture
def store(hosts: Hosts) -> Iterator[SshStore]:
    with closing(SshStore(f"ssh://n1/tmp/{secrets.token_hex(6)}", RetryTime(bound=60))) as store:
        yield store


@contextmanager
def killing(hosts: Hosts, progress: Callable[[], int], every: int) -> Iterator[list[int]]:
    """The far side dies, wherever it is, whenever so much more is done."""
    done, killed = threading.Event(), list[int]()

    def kill() -> None:
        last = progress()
        while not done.wait(0.005):
            if progress() - last >= every:
                for pid in hosts["n1"].pids(SERVER):
                    killed.append(pid)
                    os.kill(pid, 9)
                last = progress()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


def sizes(folder: Path, pattern: str) -> int:
    """Bytes of files that may vanish while they are looked at."""
    total = 0
    for path in folder.glob(pattern):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


def test_create_is_won_once_though_the_far_side_is_killed(hosts: Hosts, store: SshStore) -> None:
    names = [f"thread{n}" for n in range(4)]
    there = hosts["n1"].root / store.url.removeprefix("ssh://n1/")

    def race(pool: ThreadPoolExecutor, folder: str) -> None:
        contended = pool.map(lambda name: racer.contend(store, folder, 120, name), names)
        won = dict(zip(names, contended, strict=True))
        for n in range(120):
            [winner] = [name for name in names if n in won[name]]
            assert store.get(f"{folder}/{n}").data == racer.body(winner, n)

    def created() -> int:
        return len(list(there.glob("race*/*")))

    with killing(hosts, created, 30) as killed, ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            race(pool, f"race{turn}")
            if len(killed) >= 2:  # on a busy machine the killer comes too late for a race, or two
                break
    assert len(killed) >= 2


def test_big_file_arrives_whole_though_the_far_side_is_killed(
    hosts: Hosts, store: SshStore, tmp_path: Path
) -> None:
    data = random.Random(3).randbytes(60_000_000)
    (tmp_path / "there").write_bytes(data)
    there, here = hosts["n1"].root / store.url.removeprefix("ssh://n1/"), tmp_path / "here"
    with killing(hosts, lambda: sizes(there, ".tmp-*"), 20_000_000) as killed:
        store.upload(tmp_path / "there", "big")
    assert killed
    with killing(hosts, lambda: sizes(here, ".tmp-*"), 20_000_000) as killed:
        store.download("big", here / "back")
    assert killed
    assert (here / "back").read_bytes() == data
    assert [entry.key for entry in store.list("")] == ["big"]
    assert not list(there.glob(".tmp-*"))


def test_what_is_replaced_while_it_is_read_is_read_whole(store: SshStore, tmp_path: Path) -> None:
    versions = [bytes([n]) * 3_000_000 for n in range(2)]
    store.put("k", versions[0])
    done = threading.Event()

    def replace() -> None:
        for n in range(30):
            store.put("k", versions[n % 2])
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace)
        while not done.is_set():
            assert store.get("k").data in versions
            store.download("k", tmp_path / "k")
            assert (tmp_path / "k").read_bytes() in versions
        writing.result()


def test_link_that_is_cut_and_comes_back_costs_only_time(hosts: Hosts, store: SshStore) -> None:
    store.put("before", b"1")
    hosts["n1"].cut()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(store.put, "during", b"2", if_absent=True)
        time.sleep(2)
        assert not answer.done()
        hosts["n1"].join()
        assert answer.result(90) is True
    assert [entry.key for entry in store.list("")] == ["before", "during"]


def test_a_host_that_restarts_is_found_again(hosts: Hosts, store: SshStore) -> None:
    url = "ssh://n1/~/kept"
    with closing(SshStore(url, RetryTime(bound=20))) as kept:
        kept.put("k", b"v")
        hosts["n1"].crash()
        hosts["n1"].start()
        assert kept.get("k").data == b"v"


def test_host_that_is_down_is_unreachable_after_the_bound(hosts: Hosts) -> None:
    hosts["n1"].cut()
    with closing(SshStore("ssh://n1/tmp/x", RetryTime(bound=2))) as store, ThreadPoolExecutor(8) as pool:
        begun = time.monotonic()
        for answer in [pool.submit(store.get, f"k{n}") for n in range(8)]:
            with pytest.raises(StoreUnreachable, match="ssh://n1/tmp/x does not answer"):
                answer.result()
        assert time.monotonic() - begun < 30


def test_the_far_side_ends_with_its_client_however_that_ends(hosts: Hosts, store: SshStore) -> None:
    store.put("k", b"v")
    assert hosts["n1"].pids(SERVER)
    store.close()
    wait_until(lambda: not hosts["n1"].pids())
    script = f"from hostler.store import open_store; s = open_store({store.url!r})"
    script += "; s.get('k'); print(1, flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None and child.stdout.readline() == b"1\n"
    child.kill()
    child.wait()
    wait_until(lambda: not hosts["n1"].pids())


def test_noisy_slow_shell_does_no_harm_and_is_paid_once(hosts: Hosts) -> None:
    (hosts["n1"].home / ".bashrc").write_text("echo welcome to n1; sleep 1; printf 'no newline'\n")
    with closing(SshStore("ssh://n1/tmp/slow")) as store:
        begun = time.monotonic()
        for n in range(20):
            store.put(f"k{n}", b"x")
        assert 1 <= time.monotonic() - begun < 10


def test_a_host_key_that_changed_is_one_clear_line(hosts: Hosts) -> None:
    path = hosts.laptop / ".ssh" / "known_hosts"
    key = (hosts["n2"].home / ".sshd/key.pub").read_text().split()[1]
    path.write_text(f"{hosts['n1'].address} ssh-ed25519 {key}\n")
    with pytest.raises(
        StoreError, match=r"n1: its host key is not the one that is known: .*known_hosts, line 1"
    ) as met:
        SshStore("ssh://n1/tmp/x").get("k")
    assert "ssh-keygen -R" in met.value.hint and "\n" not in str(met.value)


def test_a_host_key_that_is_not_known_is_not_trusted(hosts: Hosts) -> None:
    (hosts.laptop / ".ssh" / "known_hosts").write_text("")
    with pytest.raises(StoreError, match="its host key is not known here"):
        SshStore("ssh://n1/tmp/x").get("k")
    assert (hosts.laptop / ".ssh" / "known_hosts").read_text() == ""


def test_a_wrong_user_is_one_clear_line(hosts: Hosts) -> None:
    with pytest.raises(StoreError, match=r"nobody@n1 refused the login: .*Permission denied") as met:
        SshStore("ssh://nobody@n1/tmp/x").get("k")
    assert "user and key" in met.value.hint


def test_a_host_without_python_is_one_clear_line(hosts: Hosts) -> None:
    (hosts["n1"].home / ".bashrc").write_text("export PATH=/root/empty\n")
    with pytest.raises(StoreError, match="n1 has no Python") as met:
        SshStore("ssh://n1/tmp/x").get("k")
    assert "install" in met.value.hint


def test_a_host_with_an_old_python_is_one_clear_line(hosts: Hosts) -> None:
    tools = hosts["n1"].home / "old"
    tools.mkdir(exist_ok=True)
    old = tools / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.6.8 && exit 0\nexit 1\n')
    old.chmod(0o755)
    (hosts["n1"].home / ".bashrc").write_text("export PATH=/root/old\n")
    with pytest.raises(
        StoreError, match=r"n1 has no Python 3.10 or newer: /root/old/python3 is Python 3.6.8"
    ):
        SshStore("ssh://n1/tmp/x").get("k")


def test_a_newer_python_beside_an_old_one_is_taken(hosts: Hosts) -> None:
    tools = hosts["n1"].home / "old"
    tools.mkdir(exist_ok=True)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    new = tools / "python3.11"
    new.unlink(missing_ok=True)
    new.symlink_to("/usr/bin/python3")
    (hosts["n1"].home / ".bashrc").write_text("export PATH=/root/old:$PATH\n")
    with closing(SshStore("ssh://n1/tmp/newer")) as store:
        check(store)


def test_a_full_home_is_one_clear_line_and_leaves_nothing(hosts: Hosts) -> None:
    home = hosts["n2"]
    small = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/root/.cache"]
    assert hosts.ssh("n2", "rm -rf /root/.cache && mkdir -p /root/.cache").returncode == 0
    enter = ["nsenter", "-t", home.root.parent.name, "-m"]
    subprocess.run([*enter, *small], check=True)
    try:
        with pytest.raises(StoreError, match=r"n2: /root/.cache/.* cannot be written: No space left") as met:
            SshStore("ssh://n2/tmp/x").get("k")
        assert "cache:" in met.value.hint
        assert not list((home.root / "root/.cache").rglob("*.py"))
    finally:
        subprocess.run([*enter, "umount", "/root/.cache"], check=True)


def test_a_name_that_nobody_has_is_unreachable_and_said_so(hosts: Hosts) -> None:
    with pytest.raises(StoreUnreachable, match="no machine of that name was found"):
        SshStore("ssh://no.such.host.invalid/x", RetryTime(bound=0.5)).get("k")


def test_refusal_of_the_far_disk_names_the_store_as_given(hosts: Hosts) -> None:
    with closing(SshStore("ssh://n1/proc/nothing")) as store:
        with pytest.raises(StoreError, match="ssh://n1/proc/nothing"):
            store.put("k", b"v")
        with pytest.raises(NotFound, match="k does not exist in ssh://n1/proc/nothing"):
            store.get("k")
