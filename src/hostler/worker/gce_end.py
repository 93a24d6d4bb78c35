"""The end of a worker on a VM: what `parting.part` decided, done with the VM's own account.

What fails is tried again by the next worker that the parent starts, after a look at the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hostler.errors import CloudError, StoreError
from hostler.records import closing
from hostler.store import Store
from hostler.worker import gce_vm
from hostler.worker.gce_vm import Vm
from hostler.worker.parting import AGAIN, CLOSE, STAY, Ended, part

OTHERS = 60.0  # seconds that the others of a launch whose time is over are given to save
ONCE_MORE, FAILED = 75, 70  # codes after which the parent starts another worker


@dataclass(frozen=True)
class Launched:
    """The launch that this worker is a part of, and its VM."""

    vm: Vm
    store: Store
    fleet: str
    number: int
    say: Callable[[str], None] = print
    settle: Callable[[], None] = lambda: None  # called when all but this VM is gone

    def serves(self) -> list[str]:
        return closing.served(self.store, self.fleet, self.number)

    def close(self) -> None:
        closing.close(self.store, self.fleet, self.number)

    def finish(self, ended: Ended, fellows: Callable[[], int] = lambda: 0) -> int:
        """The worker's exit code."""
        what = part(ended)
        if what in (STAY, AGAIN):
            return ONCE_MORE
        try:
            if what == CLOSE:
                self._take_down(ended, fellows)
            else:
                self.say("this VM leaves its fleet")
                gce_vm.report("leaving")
                self.vm.leave()
        except (CloudError, StoreError) as error:
            self.say(str(error))
            return FAILED
        return int(ended.refused)

    def _take_down(self, ended: Ended, fellows: Callable[[], int]) -> None:
        end = time.monotonic() + OTHERS
        while ended.told and fellows() and time.monotonic() < end:
            time.sleep(1.0)
        self.close()
        self.say("nothing of this fleet is needed any more: it is taken down")
        gce_vm.report("leaving")
        self.vm.tear_down(self.settle)
