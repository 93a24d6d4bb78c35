from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hostler import proctable

PS = """    1     0     1 Ss     2520 00:00:03 Sun Nov 15 09:38:28 2026
   70     1    70 Z         0 0:00.01 Sun Nov 15 09:38:29 2026
   71    70    70 S+     1792 2-01:00:05 Sun Nov 15 09:38:29 2026
"""


def test_name_with_spaces_and_brackets_does_not_confuse_the_fields() -> None:
    tail = " ".join(["S", "1", "5", "5"] + ["0"] * 15 + ["777"] + ["0", "3"] + ["0"] * 20)
    row = proctable.parse_stat(f"42 (a) b (c) {tail}")
    assert row is not None
    assert (row.pid, row.parent, row.group, row.start) == (42, 1, 5, "777")
    assert row.rss == 3 * os.sysconf("SC_PAGE_SIZE")


def test_a_stat_cut_short_is_nothing() -> None:
    assert proctable.parse_stat("") is None


def test_ps_rows_are_read_with_days_and_zombies() -> None:
    rows = proctable.parse_ps(PS)
    assert rows[71].cpu_seconds == 2 * 86400 + 3605 and rows[71].rss == 1792 * 1024
    assert rows[71].start == "Sun Nov 15 09:38:29 2026"
    assert rows[1].alive and not rows[70].alive


def test_descendants_are_found_through_parents() -> None:
    assert proctable.below(proctable.parse_ps(PS), 1) == {70, 71}


@pytest.mark.parametrize(
    "field, value, exits, killed",
    [(6, 0, False, False), (6, 0x4, True, False), (6, 0x404, True, True), (28, 256, False, True)],
)
def test_process_that_exits_or_was_killed_is_seen(field: int, value: int, exits: bool, killed: bool) -> None:
    fields = ["R", *["0"] * 40]
    fields[field] = str(value)
    row = proctable.parse_stat(f"42 (python) {' '.join(fields)}")
    assert row and row.alive and (row.exits, row.killed) == (exits, killed)


def test_tree_has_the_children_of_children() -> None:
    shell = subprocess.Popen(["sh", "-c", "sh -c 'sleep 60; true'; true"], start_new_session=True)
    try:
        while len(found := proctable.tree(shell.pid)) < 3:
            assert shell.poll() is None
        assert found[0].pid == shell.pid and {row.session for row in found} == {shell.pid}
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def test_this_process_is_alive_only_with_its_own_start_time() -> None:
    start = proctable.start_of(os.getpid())
    assert proctable.is_alive(os.getpid(), start)
    assert not proctable.is_alive(os.getpid(), "1")
    assert not proctable.is_alive(os.getpid(), "")


def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert proctable.start_of(child.pid) == ""
    child.stdout.close()
    child.wait()


def test_without_proc_ps_tells_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    linux = proctable.row(os.getpid())
    monkeypatch.setattr(proctable, "_has_proc", lambda: False)
    other = proctable.row(os.getpid())
    assert linux is not None and other is not None
    assert (other.pid, other.parent, other.group) == (linux.pid, linux.parent, linux.group)
    assert proctable.is_alive(os.getpid(), other.start)
    assert os.getpid() in proctable.table()
    assert proctable.marked("x", "Y") == set()


def test_command_of_a_process_just_started_is_waited_for() -> None:
    for _ in range(50):
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            assert proctable.runs(process.pid, ["600"])
        finally:
            process.kill()
            process.wait()
    assert not proctable.runs(process.pid, ["600"])
