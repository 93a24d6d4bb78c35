"""The end of a worker whose machine came with its launch: does what `machine_fate.fate` decided, by its host.

The next worker that the parent starts tries again what fails, after a look at the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler.errors import CloudError, StoreError
from hostler.records.launch import closing, launches, settlement
from hostler.settings import Timing
from hostler.store import Store
from hostler.worker.loop import Worker
from hostler.worker.machine_fate import AGAIN, CLOSE, STAY, Ended, fate
from hostler.worker.prepare import secrets
from hostler.worker.run.conclude import STORELESS

if TYPE_CHECKING:
    from hostler.backends.base import Host

OTHERS = 60.0  # seconds that the others of a launch whose time is over are given to save
LEAVING = 5.0  # seconds before the deadline at which the wait for them ends: to leave takes some, too
ONCE_MORE, FAILED = 75, 70  # codes after which the parent starts another worker


@dataclass
class Launched:
    """The launch that this worker is a part of, and its machine."""

    host: Host
    store: Store
    fleet: str
    number: int
    timing: Timing
    secrets: str = ""  # where those of its launch are
    say: Callable[[str], None] = print
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    ends: float | None = None  # by `clock`: its launch must be gone by then
    _worker: Worker | None = None

    @property
    def known(self) -> bool:
        """Whether it was launched by hostler; who was started by hand serves all there is."""
        return launches.read(self.store, self.fleet, self.number) is not None

    def serves(self) -> list[str]:
        return closing.served(self.store, self.fleet, self.number)

    def close(self) -> None:
        closing.close(self.store, self.fleet, self.number)

    def begin(self, worker: Worker) -> None:
        self._worker = worker
        self.host.report("working")

    def finish(self) -> int:
        """The exit code of the worker that was begun; without one it was too late for any."""
        ended = self._worker.ended if self._worker else Ended(late=True)
        what = fate(ended)
        if what in (STAY, AGAIN):
            return ONCE_MORE
        self.host.report("leaving")
        try:
            if what == CLOSE:
                self._take_down(ended)
            else:
                self.say("this machine is not needed any more: it leaves its fleet")
                self.host.leave()
        except (CloudError, StoreError) as error:
            self.say(str(error))
            return FAILED
        return int(ended.refused or ended.told == STORELESS)  # 0 is for who has seen that nothing is left

    def _take_down(self, ended: Ended) -> None:
        end = self.clock() + OTHERS
        if self.ends is not None:
            end = min(end, self.ends - LEAVING)
        while ended.told and self._worker and self.clock() < end and self._worker.fellows():
            self.pause(1.0)
        self.close()
        self.say("this fleet is not needed any more: it is taken down")
        self.host.tear_down(self._settle)

    def _settle(self) -> None:
        """All but this machine is gone, and the margin of its money covers that."""
        secrets.close(self.secrets)
        generation = launches.read(self.store, self.fleet, self.number)
        if generation is not None:
            settlement.close(self.store, generation, self.timing)
