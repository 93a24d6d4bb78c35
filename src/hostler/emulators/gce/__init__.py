"""An emulator of Google Compute Engine: machines are real processes, spot is taken away, zones run out.

Standard library only. `with emulator(...) as gce:` is all of it; see docs/gce-emulator.md.
"""

from hostler.emulators.gce.api.service import Seen
from hostler.emulators.gce.emulator import GceEmulator, emulator
from hostler.emulators.gce.meter import Bill, Usage
from hostler.emulators.gce.pace import AtDeadline, Pace

__all__ = ["AtDeadline", "Bill", "GceEmulator", "Pace", "Seen", "Usage", "emulator"]
