"""A store that is slower than the checkpoints: they come later, the loop does not wait, and it is said."""

from __future__ import annotations

from pathlib import Path

from hostler.spec.states import DONE
from script_world import Scripts

SCRIPT = """
import time
import hostler
from hostler.records.checkpoint import checkpoints
from hostler.store.folder import FolderStore

checkpoints.SLOW = 0.5
upload = FolderStore.upload

def slow(self, path, key):
    time.sleep(1.0)
    return upload(self, path, key)

FolderStore.upload = slow

class Model:
    n = 0
    def state_dict(self):
        return {"n": self.n}
    def load_state_dict(self, state):
        self.n = state["n"]

model, waits = Model(), []
with hostler.start(save_every="1 steps") as run:
    run.track(model=model)
    run.keep_best("n")
    begun = time.perf_counter()
    for step in run.steps(40):
        waits.append(time.perf_counter() - begun)
        model.n += 1
        run.log(n=model.n)
        time.sleep(0.1)
        begun = time.perf_counter()
    print("longest", max(waits))
"""


def test_slow_store_delays_checkpoints_not_the_loop_and_is_reported(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    scripts.write(SCRIPT)
    done = scripts.run()
    assert done.code == 0, done.err
    longest = float(done.out.split("longest ")[1])
    assert longest < 0.8, "an upload takes three files of a second each"
    assert done.err.count("the store took") == 1 and "the next was made meanwhile" in done.err
    assert scripts.row().state == DONE
