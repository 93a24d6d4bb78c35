"""A script without `with`, whose run ends with its process: everything is written to its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import servers
from hostler.records.checkpoint import saved_folder

servers.library("numpy")

SCRIPT = """
import sys
import numpy
import hostler

class Model:
    def __init__(self):
        self.w = numpy.zeros(3_000_000)  # of several pieces, which several threads write
    def state_dict(self):
        return {"w": self.w}
    def load_state_dict(self, state):
        self.w = state["w"]

model = Model()
run = hostler.start({"n": 1})
run.track(model=model)
run.keep_best("n")
for epoch in run.epochs(3):
    model.w += 1
    run.log(n=epoch)
"""


def test_large_state_is_written_although_the_process_is_exiting(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "output").mkdir()
    environment = {**os.environ, "HOSTLER_DIR": str(tmp_path), "HOSTLER_RUN": "end"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr and "lost" not in done.stderr
    newest = saved_folder.read(tmp_path / "checkpoint", saved_folder.committed(tmp_path / "checkpoint")[0])
    assert newest.record["step"] == 3 and newest.record["finished"] is not None
    for row in newest.files:
        saved_folder.check_file(newest.folder / row.name, row)
    state = json.loads((tmp_path / "output" / "best" / "n" / "state-0000.json").read_text())
    assert state["state"]["value"] == 2.0
