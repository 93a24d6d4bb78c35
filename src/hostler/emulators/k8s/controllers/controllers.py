"""The control loop: every controller looks at everything after every change, until none changes more."""

from __future__ import annotations

import threading

from hostler.emulators.k8s.controllers import claims, garbage, jobs, scheduler
from hostler.emulators.k8s.node import kubelet
from hostler.emulators.k8s.world import World

_SHORTEST = 0.005  # seconds between two looks


class Controllers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._thread = threading.Thread(target=self._run, name="k8s-controllers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Nothing happens by itself any more once this returns."""
        self._world.closed = True
        self._world.poke()
        self._thread.join()

    def _run(self) -> None:
        world, storage = self._world, self._world.storage
        while not world.closed:
            with storage.changed:
                world.poked = False
                seen = storage.version
                due = self._look()
                if storage.version == seen and not world.poked and not world.closed:
                    wait = None if due is None else max(due - world.clock(), _SHORTEST)
                    storage.changed.wait(wait)

    def _look(self) -> float | None:
        world = self._world
        claims.sync(world)
        scheduler.sync(world)
        dues = [jobs.sync(world), kubelet.sync(world), garbage.sync(world)]
        return min((due for due in dues if due is not None), default=None)
