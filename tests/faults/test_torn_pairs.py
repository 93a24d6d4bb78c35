"""A script with two files to a save, killed between them: it never finds files of two saves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from killer import farm, keys_of, outcome

from hostler.records.series.logs import LogReader
from hostler.spec.job import Checkpointing, Job

# The kernel takes some tenths of a second to free its memory: more than files need here to be at rest.
SCRIPT = """
import json, os, pathlib, signal, time
folder = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
weights, metadata = folder / "latest.weights.h5", folder / "training_metadata.json"
memory = bytearray(b"1") * (2 << 30)
found = [path.read_text() if path.exists() else "0" for path in (weights, metadata)]
print("begins", *found, flush=True)
for n in range(int(found[0]) + 1, 5):
    weights.write_text(str(n))
    if n == 3 and os.environ["HOSTLER_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    metadata.write_text(str(n))
    time.sleep(1.0)
"""


@pytest.mark.timeout(180)
# A shell tells the signal by its exit code; a launcher prints that a process failed.
@pytest.mark.parametrize("after", ["", "exit $?", "echo it failed; exit 1"])
def test_pair_of_a_large_process_killed_between_is_not_taken(tmp_path: Path, after: str) -> None:
    with farm(str(tmp_path / "store"), tmp_path, settle=0.1) as made:
        (made.code / "pair.py").write_text(SCRIPT)
        own = (sys.executable, "pair.py")
        command = ("sh", "-c", f'"$0" "$1" || {{ {after}; }}', *own) if after else own
        job = made.submit(Job(name="pair", command=command, retries=1, checkpoint=Checkpointing(every=0.2)))
        [key] = keys_of(job)
        made.finish(job, workers=1)
        log = b"".join(piece.data for piece in LogReader(made.store, key.run).read()).decode()
        assert outcome(made.store, key).state.state == "done", log
        begun = [line.split()[1:] for line in log.splitlines() if line.startswith("begins ")]
        assert begun == [["0", "0"], ["2", "2"]], log
