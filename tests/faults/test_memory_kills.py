"""A run that the kernel kills for its memory, in a real memory cgroup with its worker, as in a pod (v1)."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from killer import farm, keys_of, often, until

import servers
from hostler.records.run.history import tries
from hostler.records.run.log import RunLog
from hostler.records.run.state import fold
from hostler.spec.job import Job

CGROUPS = Path("/sys/fs/cgroup/memory")
LIMIT = 400 << 20
SCRIPT = """
import os
taken = bytearray(1 << 30 if os.environ["HOSTLER_ATTEMPT"] == "1" else 1)
print(len(taken))
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    if os.geteuid() or not (CGROUPS / "memory.limit_in_bytes").exists():
        servers.missing("a memory cgroup (v1) is made by root, where the kernel has them")
    made = CGROUPS / f"hostler-test-{secrets.token_hex(4)}"
    made.mkdir()
    (made / "memory.limit_in_bytes").write_text(str(LIMIT))
    yield made
    made.rmdir()


@pytest.mark.timeout(120)
def test_process_killed_in_its_workers_cgroup_ends_as_memory(tmp_path: Path, cgroup: Path) -> None:
    with farm(str(tmp_path / "store"), tmp_path) as made:
        (made.code / "greedy.py").write_text(SCRIPT)
        given = {**often(), "retries": 1}
        job = made.submit(Job(name="greedy", command=(sys.executable, "greedy.py"), **given))  # type: ignore[arg-type]
        parent = made.start()
        (cgroup / "cgroup.procs").write_text(str(parent.pid))
        [key] = keys_of(job)
        until(lambda: not made.is_open(key), why=made.said)
        entries = RunLog(made.store, key).read_on().entries
        assert tries(entries)[0].words.startswith("memory"), entries
        assert fold(entries).state == "done"
        assert parent.wait(60) == 0
