"""The program that starts the processes of one node, run as a worker runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from hostler.worker.process import starter


def start(folder: Path, code: str, count: int = 3) -> subprocess.Popen[str]:
    (folder / "processes.json").write_text(json.dumps([{"RANK": str(n + 4)} for n in range(count)]))
    words = [sys.executable, "-I", "-S", str(starter.__file__), str(folder / "processes.json")]
    words += [sys.executable, "-S", "-c", f"import os, sys, time; rank = int(os.environ['RANK'])\n{code}"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_rank_that_failed_first_is_named_last_in_the_log(tmp_path: Path) -> None:
    started = start(tmp_path, "print('mine', flush=True)\nsys.exit(7) if rank == 5 else time.sleep(60)")
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 7
    assert said.splitlines()[-1] == "rank 5 was the first to fail: exit code 7"


def test_rank_that_ends_early_and_well_blocks_nobody(tmp_path: Path) -> None:
    started = start(tmp_path, "time.sleep(0.3 * (rank == 6))")
    assert started.communicate(timeout=60)[0] == "" and started.returncode == 0


def test_ranks_that_were_told_to_go_are_no_failures(tmp_path: Path) -> None:
    started = start(tmp_path, "print('here', flush=True)\ntime.sleep(60)", 1)
    assert started.stdout is not None and started.stdout.readline() == "here\n"
    started.send_signal(signal.SIGTERM)
    [child] = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    subprocess.run(["kill", child], check=True)
    assert started.communicate(timeout=60)[0] == "" and started.returncode == 143
