"""No process of an emulated machine outlives the emulator, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gce_api
from hostler import proctable

HOLDER = """
import sys, time
from gce_api import Api
from hostler.emulators.gce import emulator
with emulator(scale=60) as gce:
    api = Api(gce)
    deaf = "(setsid bash -c 'trap \\"\\" TERM HUP; sleep 1000' &)"
    api.template(script=f"{deaf}; setsid sleep 1000 & echo ready; wait")
    api.group(2)
    for name in api.running(2):
        api.said(name, "ready")
    while any(len(gce.pids(name)) < 3 for name in gce.names()):
        time.sleep(0.01)
    print(*[pid for name in gce.names() for pid in gce.pids(name)], flush=True)
    time.sleep(1000)
"""


def test_a_killed_emulator_leaves_no_process_of_its_machines(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(gce_api.__file__).parent), *filter(None, sys.path)])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
    )
    try:
        _check(holder)
    finally:
        holder.kill()
        holder.wait()


def _check(holder: subprocess.Popen[str]) -> None:
    assert holder.stdout is not None
    pids = [int(word) for word in holder.stdout.readline().split()]
    assert len(pids) >= 6 and all(proctable.start_of(pid) for pid in pids)
    below = proctable.below(proctable.table(), holder.pid)
    assert set(pids) < below
    holder.send_signal(signal.SIGKILL)
    gce_api.until(lambda: not any(proctable.start_of(pid) for pid in below), "the end of all processes")
    holder.stdout.close()
