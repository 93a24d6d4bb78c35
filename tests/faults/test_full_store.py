"""A store whose disk fills up under a run: said, mended by freeing space, and no reason to stay for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from hostler.errors import StoreError
from hostler.spec.job import Checkpointing
from hostler.store import Store
from worker_world import World, until

SCRIPT = "import os; open(os.environ['HOSTLER_CHECKPOINT_DIR'] + '/weights', 'w').write('w' * 1000)"


class Full:
    """Takes no file, as a full disk would."""

    def __init__(self, store: Store) -> None:
        self._store, self.full = store, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def upload(self, path: Path, key: str) -> None:
        if self.full:
            raise StoreError("the disk under the store is full", hint="free some")
        self._store.upload(path, key)


def test_run_waits_for_room_says_so_and_then_finishes(world: World) -> None:
    store = Full(world.store)
    job = world.submit(SCRIPT, checkpoint=Checkpointing(every=1000))
    with world.working(store=store):
        until(lambda: any("full" in line and line.endswith("; trying again") for line in world.said))
        assert world.state(job).state == "running"
        store.full = False
        until(lambda: world.state(job).state == "done")
    assert len(world.committed(job)) == 1


def test_worker_told_to_leave_does_not_wait_for_room_forever(world: World) -> None:
    job = world.submit(SCRIPT, checkpoint=Checkpointing(every=1000))
    worker = world.worker(store=Full(world.store))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    until(lambda: any(line.endswith("; trying again") for line in world.said))
    told = time.monotonic()
    worker.tell("preempted")
    thread.join(60)
    assert not thread.is_alive() and time.monotonic() - told < world.timing.grace + 10
    world.work(dead=(world.state(job).session,))
    assert world.state(job).state == "done", "another one has taken it"
