"""An emulator of Google Compute Engine: machines are real processes, spot is taken away, zones run out.

Standard library only. `with emulator(...) as gce:` is all of it; see docs/gce-emulator.md.

emulator.py  starts the emulator on a loopback port
world.py     everything it holds, under one lock
control.py   actions of a person: preempt, run out of stock
catalog.py   regions, zones, machine types, images on offer
stock.py     shortages of zones, and quotas
agenda.py    acts at emulated times, on one thread
clock.py     emulated time
pace.py      how long things take
faults.py    failures of requests, on demand
meter.py     counts machine hours, and their cost
diary.py     a trace of all machines, for `hostler simulate`
api/         requests and answers
machine/     machines, groups and their processes
"""

from hostler.emulators.gce.api.service import Seen
from hostler.emulators.gce.emulator import GceEmulator, emulator
from hostler.emulators.gce.meter import Bill, Usage
from hostler.emulators.gce.pace import AtDeadline, Pace

__all__ = ["AtDeadline", "Bill", "GceEmulator", "Pace", "Seen", "Usage", "emulator"]
