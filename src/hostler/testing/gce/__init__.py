"""An emulator of Google Compute Engine: machines are real processes, spot is taken away, zones run out.

Standard library only. `with emulator(...) as gce:` is all of it; see docs/gce-emulator.md.
"""

from hostler.testing.gce.emulator import GceEmulator, emulator
from hostler.testing.gce.meter import Bill, Usage
from hostler.testing.gce.pace import AtDeadline, Pace
from hostler.testing.gce.service import Seen

__all__ = ["AtDeadline", "Bill", "GceEmulator", "Pace", "Seen", "Usage", "emulator"]
